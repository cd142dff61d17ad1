"""What every experiment needs: cells, claims, results on disk, runners, figures and the page of verdicts."""
