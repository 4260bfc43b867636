"""What verbs declare: arguments, help pages, and checks of both before anything heavy is imported."""
