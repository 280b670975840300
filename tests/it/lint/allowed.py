import torch


def forward(x):
    y = x.cuda().sum()
    a = y.item()  # waits: certain # sync-report: allow shown on request
    # sync-report: allow the scheduler needs it
    b = y.item()  # waits: certain avoidable
    c = y.item()  # waits: certain avoidable # sync-report: allow
    d = (
        y  # sync-report: allow of another line
        .item()  # waits: certain avoidable
    )
    return a, b, c, d
