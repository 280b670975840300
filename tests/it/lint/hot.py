import torch


def setup():
    return torch.cuda.synchronize()  # waits: certain avoidable F01


def helper(x):
    return x.item()  # waits: certain avoidable A01


class Net(torch.nn.Module):
    def forward(self, x):
        return x.sum().item()  # waits: certain


def main(loader):
    for x in loader:
        helper(x)
        print(x.sum().item())  # waits: certain avoidable A01
    for y in torch.zeros(3, device="cuda").tolist():  # waits: certain avoidable
        print(y)
