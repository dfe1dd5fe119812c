"""Knowledge distillation: to answer as a teacher does."""

from __future__ import annotations

import torch
from torch.nn.functional import kl_div, log_softmax


def distillation_loss(logits: torch.Tensor, taught: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return KL(teacher || student) of answers softened by a temperature T, the mean over samples.

    Parameters
    ----------
    logits : tensor of shape (n, C)
        Of the student. Classes that the teacher does not know come last and are left out.
    taught : tensor of shape (n, c)
        Of the teacher, c <= C; no gradient flows into it.
    temperature : float

    Returns
    -------
    loss : scalar tensor
        0 where both agree. Its gradient is that of the cross-entropy with the teacher's answers, which public code of
        LwF and iCaRL minimises: the two differ by the entropy of these. There is no factor T^2, which [1]_ proposes to
        make up for the gradients' factor 1 / T^2: a method that wants it puts it into the weight.

    References
    ----------
    .. [1] Hinton, Vinyals & Dean. "Distilling the Knowledge in a Neural Network." 2015.

    Examples
    --------
    >>> import torch
    >>> from aircl.methods.gradient.distillation import distillation_loss
    >>> logits = torch.tensor([[2.0, 0.0, 9.0]])
    >>> distillation_loss(logits, logits[:, :2], 2.0).item()
    0.0
    >>> round(distillation_loss(logits, torch.tensor([[0.0, 2.0]]), 2.0).item(), 3)
    0.462
    """
    own = log_softmax(logits[:, : taught.shape[1]] / temperature, dim=1)
    others = log_softmax(taught.detach() / temperature, dim=1)
    return kl_div(own, others, reduction="batchmean", log_target=True)
