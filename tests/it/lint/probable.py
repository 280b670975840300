"""Nothing says where these live, and only tensors are used so."""
import torch
from torch.utils.data import Dataset


def report(meter, losses, seen):
    for loss in losses:
        meter.value = loss.item()  # waits: certain
        names = loss.tolist()  # waits: certain
        back = loss.detach().cpu()  # waits: certain
        x = float(seen)
    return names, back, x


def score(meter, predictions):
    for prediction in predictions:
        meter.value = prediction["score"].item()  # waits: probable
        meter.names = prediction["labels"].tolist()  # waits: probable


def train(model, loader, device):
    model.to(device)
    for batch, target in loader:
        batch = batch.to(device)  # waits: probable avoidable
        target = target.to(batch.device)
        loss = model(batch)
        scaler.step(optimizer)  # waits: probable needed A20
    torch.save(model.state_dict(), "last.pt")  # waits: probable


class Rows(Dataset):
    def __getitem__(self, at):
        row = self.rows[at]
        return row.item(), row.max().tolist(), torch.tensor(row)


def test_rows():
    assert torch.allclose(Rows()[0], Rows()[1])
