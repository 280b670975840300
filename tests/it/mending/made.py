# Tensors that the GPU can make itself.

# --- a constant
scale = torch.tensor(3.14, device="cuda")  #! upload tensor 4
# file: after
scale = torch.full((), 3.14, device="cuda")

# --- a constant in a list
first = torch.tensor([0], dtype=x.dtype, device=x.device)  #! upload tensor 8
# file: after
first = torch.full((1,), 0, dtype=x.dtype, device=x.device)

# --- a constant that is moved
none = torch.tensor(-1).to(x.device)  #! upload to 8
# file: after
none = torch.full((), -1, device=x.device)

# --- a constant of a type of tensors
part = torch.FloatTensor([1]).cuda()  #! upload cuda 4
# file: after
part = torch.full((1,), 1, dtype=torch.float32, device="cuda")

# --- as many elements
parts = torch.FloatTensor(3).cuda()  #! upload cuda 12
# file: after
parts = torch.FloatTensor(3).cuda(non_blocking=True)

# --- two numbers
pair = torch.tensor([1, 2], device="cuda")  #! upload tensor 16
# file: after
pair = torch.tensor([1, 2]).to("cuda", non_blocking=True)

# --- zeros
state = torch.zeros(2, 64, dtype=torch.half).cuda()  #! upload cuda 256
# file: after
state = torch.zeros(2, 64, dtype=torch.half, device="cuda")

# --- zeros over lines
state = (torch.zeros(
    (2, 64),
)
    .to(device))  #! upload to 256; at -3
# file: after
state = (torch.zeros(
    (2, 64), device=device,
)
    )

# --- in another form
rows = torch.arange(n).unsqueeze(0).float().to(device)  #! upload to 512
# file: after
rows = torch.arange(n, device=device).unsqueeze(0).float()

# --- random numbers in another form
noise = torch.rand(n)[None].view(1, n).cuda()  #! upload cuda 512
# file: after
noise = torch.rand(n)[None].view(1, n).cuda(non_blocking=True)

# --- random numbers in brackets, in another form
noise = (torch.rand(n)).view(1, n).cuda()  #! upload cuda 512; unsafe random
# file: after
noise = (torch.rand(n, device="cuda")).view(1, n)

# --- in the words of old programs: to be written anew
cost = Variable(torch.FloatTensor(n, n).zero_()).cuda()  #! upload cuda 512; refused form

# --- random numbers
noise = torch.randn(64, 20).to(device)  #! upload to 5120; unsafe random
# file: after
noise = torch.randn(64, 20, device=device)

# --- a count from 0, which nothing rounds
steps = torch.arange(n).to(device)  #! upload to 512
# file: after
steps = torch.arange(n, device=device)

# --- a count that may be of fractions
steps = torch.arange(low, high, width).to(device)  #! upload to 512; unsafe random
# file: after
steps = torch.arange(low, high, width, device=device)

# --- a leaf of the graph
w = torch.zeros(3, requires_grad=True).cuda()  #! upload cuda 12; refused form

# --- like another tensor
w = torch.zeros(3).to(x)  #! upload to 12; refused form

# --- device and type at once
w = torch.zeros(3).to(device, torch.half)  #! upload to 12; refused form

# --- an element
x[0, -1] = 1.5  #! upload setitem 4
# file: after
x[0, -1].fill_(1.5)

# --- an element, in a loop
for i in range(9):
    x[:, i] = 1.5  #! upload setitem 4
# file: after
for i in range(9):
    x[:, i].fill_(1.5)

# --- a list of columns
x[:, [1, 2]] = 0.0  #! upload setitem 4; refused no-edit

# --- a mask
x[mask] = 0.0  #! upload setitem 4; refused no-edit

# --- a tensor of columns
x[:, columns] = 0.0  #! upload setitem 4; refused no-edit

# --- true is a mask
x[True] = 0.0  #! upload setitem 4; refused advanced

# --- no number
x[3] = value  #! upload setitem 4; refused no-edit

# --- several targets
x[3] = y[3] = 1.0  #! upload setitem 4; refused no-edit

# --- a constant with a place of its own
half = torch.tensor(0.5, device="cpu").to(device)  #! upload to 4
# file: after
half = torch.tensor(0.5, device="cpu").to(device, non_blocking=True)

# --- in a text, whose quotes it would break before Python 3.12
print(f"{torch.zeros(5).cuda()}")  #! upload cuda 512; refused form
