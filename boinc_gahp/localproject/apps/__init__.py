"""The apps that come with the local project; each is a program of its own."""
