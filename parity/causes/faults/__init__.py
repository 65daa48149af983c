"""What goes wrong, by topic; each file's CAUSES are the catalogue's."""
