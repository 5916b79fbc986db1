"""What stands behind the ids that reports print, a module for each few kinds of them; `kinds` has them all."""
