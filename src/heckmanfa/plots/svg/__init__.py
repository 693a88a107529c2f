"""Pictures as SVG text with CSS classes, which a page colours."""
