def encode(word, merges):
    pieces = list(word)
    while True:
        here = [pair for pair in merges if pair in zip(pieces, pieces[1:])]
        if not here:
            return pieces
        joined = []
        for piece in pieces:
            if joined and (joined[-1], piece) == here[0]:
                joined[-1] += piece
            else:
                joined.append(piece)
        pieces = joined
