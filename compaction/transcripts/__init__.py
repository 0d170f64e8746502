"""Reading, writing and arranging the lines of an agent's transcript; counting and pricing live on the floors above."""
