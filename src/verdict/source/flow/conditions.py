# Branches on `flag`. The marker says whether all that the branch does is to choose between values, which the GPU can do; or, of a
# loop's and a function's, which way the program forks (`Fork`).

# ---
y = a if flag else b  #! chooses values

# ---
if flag:  #! chooses values
    x = x.clamp(max=limit)

# ---
if flag:  #! chooses values
    x = a * 2
    y = b[0]
else:
    x = a.exp()

# ---
if flag:  #! chooses values
    x += y

# ---
if flag:  #! chooses values
    x = a * 2
    x.scatter_(1, i, y)
else:
    x = a

# ---
if flag:  #! acts
    copyfile(a, b)

# ---
for x in xs:
    if flag:  #! acts
        break

# ---
while flag:  #! acts
    x = step(x)

# ---
if flag:  #! acts
    done = True

# ---
if flag:  #! acts
    x = a
    save(x)

# ---
if flag:  #! acts
    x = a
else:
    log(x)

# ---
if flag:  #! acts
    x = a
elif other:
    x = b

# ---
if flag:  #! acts
    self.best = x

# ---
if flag:  #! acts
    x[0] = y

# ---
y = 'yes' if flag else 'no'  #! acts

# ---
def f():
    if flag:  #! acts
        return a
    return b

# ---
for x in xs:
    if flag:  #! Stops
        break

# ---
for x in xs:
    if flag and ready:  #! Stops
        self.done = True

# ---
def f():
    for x in xs:
        y = x
        if flag:  #! Stops
            return y

# ---
while flag:  #! Stops
    x = step(x)

# ---
def f():
    for x in xs:
        if flag:  #! Other
            return x

# ---
def f():
    for x in xs:
        if flag:  #! Other
            return False

# ---
def f():
    if flag:  #! Other
        return x

# ---
for flag in flags:
    if flag:  #! Other
        break

# ---
for x in xs:
    if flag:  #! Other
        save(x)

# ---
for i in range(flag):  #! Counts
    f(i)

# ---
if flag:  #! Chooses
    x[i, :n] = -np.inf

# ---
if flag:  #! Chooses
    x = y * 2
