"""The paper's model of NNX's own layers: what a framework's user would write.
"""
