# Files of libraries, and of programs that call them. A marker says what is to be said of a wait at its line, as the test that reads
# the file puts it.

# --- transformers: a line that no entry names is read itself
class Trainer:
    def _inner_training_loop(self, args):
        for step, inputs in enumerate(loader):
            if args.logging_nan_inf_filter and (torch.isnan(tr_loss_step) or torch.isinf(tr_loss_step)):  #! false logging L01 R17
                tr_loss = tr_loss + tr_loss / (1 + step)
            grad_norm = grad_norm.item()  #! false logging L03 R17
            seen += self.accelerator.gather(input_tokens).sum().cpu().item()  #! false logging L04 R17
            self.keep(self.other.item())  #! unknown value-read A01 S06
        self._total_loss_scalar += self._tr_loss.item()  #! false logging L05 R17

# --- a copied script
def train_one_epoch(loader, model, losses_m):
    for step, batch in enumerate(loader):
        loss = model(batch)
        losses_m.update(loss.item() * accum_steps, batch.size(0))  #! logging L34
        if loss.item() > 3:  #! another
            step = 0
    return losses_m.avg

# --- an agent
class Agent:
    def train(self):
        loss = self.loss()
        self.logger.record('loss', loss.item())  #! false logging A01 S04
    def act(self, state):
        return self.net(state).argmax().item()  #! true cpu-compute A01 S06
    def learn(self):
        for state in self.states:
            self.env.step(self.act(state))
            self.train()

# --- torch: a wrapper
def decorate_context(*args, **kwargs):
    return func(*args, **kwargs)

# --- torch: a call of a module
def _call_impl(self, *args, **kwargs):
    return forward_call(*args, **kwargs)

# --- a scripted function
def step(x):
    y = scripted(x)
