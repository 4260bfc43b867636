"""A report in the forms that machines read; a module a form, each with one function from a `Report` to a text."""
