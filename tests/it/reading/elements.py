# One element after the other of a tensor that a loop goes through.

# --- text of a row of tokens
class Decoder:
    def decode(self, probs):
        ids = probs.argmax(-1)
        return [self.text(ids[b], ids.size(1)) for b in range(ids.size(0))]  #< text

    def text(self, row, size):
        out = ''
        for i in range(size):
            char = self.names[row[i].item()]  #! item: round-trip; rules S20; pattern A14
            if i > 0 and row[i - 1].item() == 0:  #! item: round-trip; pattern A14
                continue
            out += char
        return out

# --- tokens of a tensor that a caller passes
def words(tokens, end):
    return [w for w in tokens if w != end]  #! truth: round-trip; pattern A14

def run(model, end):
    best = model.step().max(-1)[1].view(-1)
    return words(best, end)  #< words

# --- hypotheses on the host
def extend(hyps, logits, k):
    scores, ids = torch.topk(logits.log_softmax(-1), k)
    grown = []
    for i, hyp in enumerate(hyps):
        for j in range(k):
            grown.append(hyp.extend(ids[i, j].item(), scores[i, j].item()))  #! item: round-trip; pattern A14
    return sorted(grown, key=lambda hyp: hyp.score)[:k]

# --- a list of tensors
def sizes(parts):
    lengths = [part.sum() for part in parts]
    for length in lengths:
        if length.item() > 9:  #! item: control-flow; rules S01 S17; pattern A14
            run(length)

# --- a tensor that each turn makes anew
def search(model, x, n):
    done = x.new_zeros(n)
    for i in range(n):
        done = model(x, done)
        if done[i].item():  #! item: control-flow; rules S01
            break

# --- between other work of the device
def disable(labels, many):
    total = labels.sum(1)
    for i in range(labels.size(0)):
        if total[i] > many:  #! truth: control-flow; rules S01 S17
            labels[i][torch.nonzero(labels[i] == 1)[many:]] = -1

# --- held against what the device knows
def over(scores, best):
    top, _ = scores.max(-1)
    for i in range(9):
        if top[i] > best.detach():  #! truth: control-flow; rules S01 S17
            run(i)

# --- a table of symbols asked for each token, through its own brackets
class Table:
    def __getitem__(self, at):
        if at < len(self.symbols):  #! truth: round-trip; pattern A14
            return self.symbols[at]
        return self.unknown
    def string(self, tokens):
        return ' '.join(self[at] for at in tokens)  #< __getitem__

def show(table, model):
    best = model.step().argmax(-1).view(-1)
    print(table.string(best))  #< string

# --- an index made a number is no read of its own
def text(names, model):
    ids = model.step().argmax(-1).view(-1)
    return ''.join([names[int(i)] for i in ids])  #! int: round-trip; pattern A14; expression int(i)

def text_of_tuple(names, model):
    ids = model.step().argmax(-1).view(-1)
    return ''.join([names[int(i)] for i in iter(tuple(ids))])  #! int: round-trip; pattern A14; expression int(i)

# --- a list that is asked for an entry by each element
class Words:
    def __getitem__(self, i):
        return self.words[i]  #! read index_scalar 4: dynamic-shape; rules S11; silent size

    def word(self, i):
        return self[i]  #< __getitem__

    def text(self, row):
        if row.dim() == 2:
            return [self.text(one) for one in row]
        return ' '.join(self.word(i) for i in row)  #< word

# --- elements of two tensors at once
def walk(table, t, dt):
    for i, (alpha, beta) in enumerate(zip(table.alpha, table.beta)):
        if alpha == 1.:  #! truth: control-flow; rules S01 S17
            t = advance(t, beta * dt)
    return t

# --- a loop that changes what it goes through, or an element of it, or hands it on
def changing(model, n):
    t = model.step().argmax(-1).view(-1)
    for v in t:
        if v > 0:  #! truth: control-flow; rules S01
            t[1:] = 0
    for v in t:
        if v > 0:  #! truth: control-flow; rules S01
            v.zero_()
    for i in range(n):
        if t[i] > 0:  #! truth: control-flow; rules S01
            mark(t)
