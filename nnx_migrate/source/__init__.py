"""Reading a project: files, module names, scopes and classes, by stdlib ``ast`` alone."""
