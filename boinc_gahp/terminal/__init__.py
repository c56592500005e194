"""What commands read and print: arguments, tables, progress, colours, and words for people."""
