"""How results, questions and progress of actions are printed."""
