"""How sure a network is of a sample: whether changed views of it get the same answer."""

from __future__ import annotations

import torch
from torch.nn.functional import one_hot

from aircl.backbones.device import send
from aircl.methods.gradient.rows import pieces
from aircl.methods.gradient.student import Student
from aircl.methods.gradient.views import Views

AT_A_TIME = 512


def vote_uncertainty(
    student: Student, views: Views, inputs: torch.Tensor, n_views: int, generator: torch.Generator
) -> torch.Tensor:
    """Return the share of views that do not vote for the class with the most votes [1]_.

    Parameters
    ----------
    student : Student
    views : Views
        Whose `changed` makes the views: images after RandAugment, or features with noise.
    inputs : tensor of shape (n, ...)
    n_views : int
    generator : torch.Generator

    Returns
    -------
    uncertainty : tensor of shape (n,)
        0 if all views agree.

    References
    ----------
    .. [1] Bang et al. "Rainbow Memory: Continual Learning with a Memory of Diverse Samples." CVPR 2021.
    """
    parts = []
    with torch.no_grad():
        for part in pieces(inputs, AT_A_TIME):
            votes = torch.stack([student(views.changed(part, generator, "rand")).argmax(1) for _ in range(n_views)])
            most = one_hot(votes, len(student.head.classes)).sum(0).amax(1)
            # Beside the samples, which are on the CPU.
            parts.append(send(1 - most / n_views, inputs.device))
    return torch.cat(parts) if parts else torch.zeros(0, device=inputs.device)
