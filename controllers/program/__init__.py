"""What runs in the pods. It has no stack, no command line of an operator's, and of other packages what `controllers.contents` names."""
