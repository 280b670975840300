# Masks whose size the forward pass and its backward pass wait for; the marker says what is said of both.

# --- eye
def forward(x, device):
    mask = torch.eye(len(x), dtype=torch.bool).to(device)
    return x[~mask]  #! false host-known S20

# --- seen
def forward(x, device):
    mask = (x > 0).all(1)
    return x[~mask]  #! true dynamic-shape S11
