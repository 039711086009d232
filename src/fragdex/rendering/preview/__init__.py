"""The film of a page before it is made: drawn frame by frame for the person who makes the page."""
