"""The figures of the paper, one file each: the runs and the plot."""
