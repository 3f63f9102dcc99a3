"""What people see: a real JupyterLab in a real Chromium, read as its user reads it."""
