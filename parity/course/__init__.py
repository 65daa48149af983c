"""The course's exercises: what is asked, and whether an answer is right."""
