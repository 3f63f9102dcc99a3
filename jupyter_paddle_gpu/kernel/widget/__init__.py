"""The live view of this kernel in its notebook; only ``screen`` imports anywidget, when one is shown."""
