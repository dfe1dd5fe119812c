"""Prompt methods against their public formulas, written once more without any part of ours, in double precision."""

from __future__ import annotations

import copy
from math import cos, pi
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn.functional import cosine_similarity, cross_entropy, gelu, layer_norm, linear  # noqa: E402

from aircl.backbones.network import Network  # noqa: E402
from aircl.backbones.transform import ImageTransform  # noqa: E402
from aircl.backbones.vit import VisionTransformer  # noqa: E402
from aircl.methods.gradient.adapters import AdaptedViT  # noqa: E402
from aircl.methods.prompt import PromptCentre  # noqa: E402

WIDTH, DEPTH, HEADS = 12, 5, 3


@pytest.fixture(scope="module")
def vit():
    """A ViT with random weights: nothing has to be learned here."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = VisionTransformer(image_size=8, patch_size=4, width=WIDTH, depth=DEPTH, heads=HEADS, mlp_width=24)
        for name, parameter in module.named_parameters():
            # What all images share is small, so that they differ behind the blocks.
            shared = "bias" in name or "token" in name or "pos" in name
            torch.nn.init.normal_(parameter, mean=float("norm" in name and not shared), std=0.1 if shared else 1.0)
    return Network("random", module.double(), ImageTransform(8), width=WIDTH, architecture="random")


@pytest.fixture
def prepared(digits, make, vit):
    """A function that returns a method after a phase, and the rows of the next one, everything in double precision."""

    def prepare(name, *, online=False, **options):
        method = make(name, backbone=copy.deepcopy(vit), online=online, **options)
        method.student.double()
        method.views.plain = lambda pixels: pixels.double() / 255
        method.views.training = lambda pixels, generator: pixels.double() / 255
        first, second, *_ = digits.stream(5).phases
        digits.teach(method, first, at_most=24)
        rows = method.rows(digits.images[second.train[:9]], digits.labels[second.train[:9]])
        method.meet(rows)
        with torch.no_grad():  # rows of zeros would hide what is below the head
            generator = torch.Generator().manual_seed(1)
            for parameter in method.student.head.parameters():
                parameter += torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        return method, rows

    return prepare


def columns_of(method, rows):
    return torch.tensor([method.student.head.classes.index(label) for label in rows["labels"].tolist()])


def masked(logits, columns):
    """Logits as phase-wise training sees them: of the classes of the phase only."""
    out = torch.full_like(logits, -torch.inf)
    present = columns.unique()
    out[:, present] = logits[:, present]
    return out


# -- a ViT, by its weights --
def block(w, i, x, prefix=None, extra=None, adapter=None):
    """A block of a ViT; a prefix is keys and values before its own, extra tokens come in and are dropped behind it.

    An adapter reads what the second norm reads, and is added beside the MLP.
    """
    n, t = x.shape[:2]
    x = x if extra is None else torch.cat([x, extra], 1)
    normed = layer_norm(x, (WIDTH,), w[f"blocks.{i}.norm1.weight"], w[f"blocks.{i}.norm1.bias"], 1e-6)
    q, k, v = linear(normed, w[f"blocks.{i}.attn.qkv.weight"], w[f"blocks.{i}.attn.qkv.bias"]).split(WIDTH, -1)
    if prefix is not None:
        k, v = torch.cat([prefix[0], k], 1), torch.cat([prefix[1], v], 1)
    q, k, v = (part.reshape(n, -1, HEADS, WIDTH // HEADS).transpose(1, 2) for part in (q, k, v))
    seen = (q @ k.mT / (WIDTH // HEADS) ** 0.5).softmax(-1) @ v
    seen = seen.transpose(1, 2).reshape(n, -1, WIDTH)
    x = x + linear(seen, w[f"blocks.{i}.attn.proj.weight"], w[f"blocks.{i}.attn.proj.bias"])
    normed = layer_norm(x, (WIDTH,), w[f"blocks.{i}.norm2.weight"], w[f"blocks.{i}.norm2.bias"], 1e-6)
    inner = gelu(linear(normed, w[f"blocks.{i}.mlp.fc1.weight"], w[f"blocks.{i}.mlp.fc1.bias"]))
    beside = 0.0 if adapter is None else adapter(x)
    return (x + linear(inner, w[f"blocks.{i}.mlp.fc2.weight"], w[f"blocks.{i}.mlp.fc2.bias"]) + beside)[:, :t]


def embed(w, images):
    """Class token and patches, row by row, with their positions."""
    patches = images.unfold(2, 4, 4).unfold(3, 4, 4).permute(0, 2, 3, 1, 4, 5).reshape(len(images), 4, -1)
    kernel = w["patch_embed.proj.weight"].reshape(WIDTH, -1)
    tokens = linear(patches, kernel, w["patch_embed.proj.bias"])
    return torch.cat([w["cls_token"].expand(len(images), 1, WIDTH), tokens], 1) + w["pos_embed"]


def see(w, x, prefixes=None, extras=None):
    for i in range(DEPTH):
        x = block(w, i, x, (prefixes or {}).get(i), (extras or {}).get(i))
    return layer_norm(x, (WIDTH,), w["norm.weight"], w["norm.bias"], 1e-6)


def test_the_adapter_of_ranpac(vit):
    """0.1 * (W_up dropout(relu(W_down x + b_down)) + b_up), x before the second norm; as many as there are blocks."""
    generator = torch.Generator().manual_seed(0)
    adapted = AdaptedViT(copy.deepcopy(vit.module), torch.Generator().manual_seed(5)).double()
    for adapter in adapted.adapters:
        assert adapter.down.shape == (64, WIDTH)
        assert adapter.down.abs().max() <= WIDTH**-0.5
        assert not adapter.up.any()
        for parameter in adapter.parameters():
            torch.nn.init.normal_(parameter, generator=generator)
    images = torch.rand(3, 3, 8, 8, generator=generator, dtype=torch.float64)
    w = {k: v.detach() for k, v in vit.module.state_dict().items()}

    def expected(kept):
        x = embed(w, images)
        for i, own in enumerate(adapted.adapters):
            down, down_bias, up, up_bias = own.parameters()
            drop = kept[i].double() / 0.9 if kept else 1.0
            x = block(w, i, x, adapter=lambda x: 0.1 * ((x @ down.T + down_bias).relu() * drop @ up.T + up_bias))  # noqa: B023
        return layer_norm(x, (WIDTH,), w["norm.weight"], w["norm.bias"], 1e-6)[:, 0]

    torch.testing.assert_close(adapted.eval()(images), expected([]), rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(adapted.vit(images), vit.module(images))  # the adapters are at work in `forward` alone
    state = adapted.adapters[0].generator.get_state()
    seen = adapted.train()(images)
    again = torch.Generator()
    again.set_state(state)
    kept = [torch.rand(3, 5, 64, generator=again) >= 0.1 for _ in range(DEPTH)]
    torch.testing.assert_close(seen, expected(kept), rtol=1e-6, atol=1e-9)


def test_a_step_of_the_adapters_of_ranpac_and_ease(vit):
    """CE of scale * cos(features, rows of a throw-away head); SGD with weight decay, one step of a schedule of one."""
    adapted = AdaptedViT(vit.module, torch.Generator().manual_seed(5)).double()
    with torch.no_grad():
        for adapter in adapted.adapters:
            torch.nn.init.normal_(adapter.up, generator=torch.Generator().manual_seed(6))
    before = [[p.detach().clone().requires_grad_() for p in adapter.parameters()] for adapter in adapted.adapters]
    generator, again = adapted.adapters[0].generator, torch.Generator()
    again.set_state(generator.get_state())
    rows = {"inputs": torch.rand(6, 3, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(7))}
    rows["labels"] = torch.tensor([7, 2, 7, 4, 4, 2])
    views = SimpleNamespace(plain=lambda pixels: pixels)
    adapted.learn_classes(rows, views, generator, augment=False, epochs=1, batch_size=6, learning_rate=0.5)

    bound = WIDTH**-0.5
    head = torch.empty(3, WIDTH, dtype=torch.float64).uniform_(-bound, bound, generator=again)
    order = torch.randperm(6, generator=again)
    w, x = vit.module.state_dict(), embed(vit.module.state_dict(), rows["inputs"][order])
    for i, (down, down_bias, up, up_bias) in enumerate(before):
        drop = (torch.rand(6, 5, 64, generator=again) >= 0.1).double() / 0.9
        x = block(w, i, x, adapter=lambda x: 0.1 * ((x @ down.T + down_bias).relu() * drop @ up.T + up_bias))  # noqa: B023
    features = layer_norm(x, (WIDTH,), w["norm.weight"], w["norm.bias"], 1e-6)[:, 0]
    cosines = cosine_similarity(features[:, None], head[None], dim=2)
    codes = torch.tensor([[2, 4, 7].index(label) for label in rows["labels"][order].tolist()])
    flat = [parameter for parameters in before for parameter in parameters]
    for parameter, slope, now in zip(
        flat, torch.autograd.grad(cross_entropy(cosines, codes), flat), adapted.parameters(), strict=True
    ):
        torch.testing.assert_close(now, parameter - 0.5 * (slope + 5e-4 * parameter), rtol=1e-6, atol=1e-9)
    assert not adapted.training
    assert not any(parameter.requires_grad for parameter in adapted.parameters())


def images_and_weights(method, rows):
    return rows["inputs"].double() / 255, {k: v.detach() for k, v in method.student.trunk.state_dict().items()}


def compare_gradients(method, rows, expected):
    """The loss and its gradients by all that is trained are those of the formula, which used the same parameters."""
    trained = [parameter for parameter in method.student.parameters() if parameter.requires_grad]
    theirs = torch.autograd.grad(expected, trained, allow_unused=True)
    loss = method.loss(rows)
    ours = torch.autograd.grad(loss, trained, allow_unused=True)
    torch.testing.assert_close(loss, expected, rtol=1e-6, atol=1e-9)
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None or not a.any()) == (b is None or not b.any())
        if a is not None and b is not None:
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9)


# -- L2P --
def test_l2p(prepared):
    """Tokens of the 5 nearest prompts with the class token's position; CE in the phase - 0.1 * sum of similarities."""
    method, rows = prepared("l2p", pool=7)
    images, w = images_and_weights(method, rows)
    pool, head, columns = method.student.prompts, method.student.head, columns_of(method, rows)
    x = embed(w, images)
    similarity = cosine_similarity(see(w, x)[:, 0][:, None], pool.keys, dim=-1)
    nearest = similarity.topk(5).indices
    prompts = pool.prompts[nearest].reshape(9, 25, WIDTH) + w["pos_embed"][:, 0]
    features = see(w, torch.cat([x[:, :1], prompts, x[:, 1:]], 1))[:, 1:26].mean(1)
    logits = masked(linear(features, head.weight, head.bias), columns)
    pull = 0.1 * similarity.gather(1, nearest).sum(1).mean()
    method.compared = columns.unique()
    # 0.5 * the mean distance of 5 keys is 0.5 - 0.1 * the sum of their similarities.
    compare_gradients(method, rows, cross_entropy(logits, columns) - pull + 0.5)


# -- DualPrompt --
@pytest.mark.parametrize("assign", ["phase", "nearest"])
def test_dualprompt_with_phases(assign, prepared):
    """Prefixes, not projected: G in blocks 0-1, E in 2-4, that of the phase; CE in the phase + distance to its key."""
    method, rows = prepared("dualprompt", pool=4, assign=assign)
    images, w = images_and_weights(method, rows)
    experts, general = method.prompts.experts, method.prompts.general
    head, columns = method.student.head, columns_of(method, rows)
    x = embed(w, images)
    with torch.no_grad():  # the key of the phase's expert is the nearest to no sample
        experts.keys[1] = -see(w, x)[:, 0].mean(0)
    distance = 1 - cosine_similarity(see(w, x)[:, 0][:, None], experts.keys, dim=-1)
    assert (distance.argmin(1) != 1).all()
    chosen = torch.ones(9, dtype=torch.int64) if assign == "phase" else distance.argmin(1)
    prefixes = {i: [general[i, part].expand(9, -1, -1) for part in (0, 1)] for i in (0, 1)}
    prefixes |= {i: [experts.prompts[chosen, i - 2, part] for part in (0, 1)] for i in (2, 3, 4)}
    logits = masked(linear(see(w, x, prefixes)[:, 0], head.weight, head.bias), columns)
    pull = distance.gather(1, chosen[:, None]).mean()
    method.compared = columns.unique()
    compare_gradients(method, rows, cross_entropy(logits, columns) + pull)


def test_the_expert_of_a_phase_begins_as_the_one_before_it_and_beyond_the_pool_keys_choose(digits, make, vit):
    method = make("dualprompt", backbone=vit, pool=2, epochs=1)
    method.student.double()
    method.views.plain = method.views.training = lambda pixels, *_: pixels.double() / 255
    experts, began = method.prompts.experts, []
    pass_over = method.pass_over

    def noted(*arguments):
        began.append([parameter.detach().clone() for parameter in (experts.prompts, experts.keys)])
        pass_over(*arguments)

    method.pass_over = noted
    trained = []
    for phase in digits.stream(5).phases[:3]:
        digits.teach(method, phase, at_most=32)
        trained.append([parameter.detach().clone() for parameter in (experts.prompts, experts.keys)])
    for was, copied, now in zip(trained[0], began[1], trained[1], strict=True):
        assert torch.equal(copied[1], was[0])  # a copy of what phase 1 ended with ..
        assert torch.equal(copied[0], was[0])
        assert torch.equal(now[0], was[0])  # .. which stays as it was
        assert not torch.equal(now[1], was[0])
    moved = [not torch.equal(a, b) for a, b in zip(trained[2][0], trained[1][0], strict=True)]
    assert any(moved)


def test_dualprompt_online(prepared):
    """Prompt tuning: tokens enter a block and are dropped behind it; the expert of the nearest key; all classes."""
    method, rows = prepared("dualprompt", online=True, pool=4)
    images, w = images_and_weights(method, rows)
    experts, general = method.prompts.experts, method.prompts.general
    head, columns = method.student.head, columns_of(method, rows)
    x = embed(w, images)
    distance = 1 - cosine_similarity(see(w, x)[:, 0][:, None], experts.keys, dim=-1)
    nearest = distance.argmin(1)
    extras = {i: general[i, 0].expand(9, -1, -1) for i in (0, 1)}
    extras |= {i: experts.prompts[nearest, i - 2, 0] for i in (2, 3, 4)}
    logits = linear(see(w, x, extras=extras)[:, 0], head.weight, head.bias)
    compare_gradients(method, rows, cross_entropy(logits, columns) + distance.amin(1).mean())


# -- CODA-Prompt --
def test_coda_prompt(prepared):
    """a_m = cos(q A_m, K_m); keys and values are halves of sum a_m P_m; CE + 0.1 * mean squares of T T' - I."""
    method, rows = prepared("coda-prompt", components=3, length=4, epochs=2)
    images, w = images_and_weights(method, rows)
    own, head, columns = method.components, method.student.head, columns_of(method, rows)
    x = embed(w, images)
    query, prefixes, penalty = see(w, x)[:, 0], {}, 0.0
    assert own.old_P.shape[1] == 3
    for i in range(5):
        P, K, A = (torch.cat([getattr(own, f"old_{name}")[i], getattr(own, name)[i]]) for name in "PKA")
        weights = torch.stack([cosine_similarity(query * A[m], K[m][None], dim=1) for m in range(6)], 1)
        prompt = sum(weights[:, m, None, None] * P[m] for m in range(6))
        prefixes[i] = prompt[:, :2], prompt[:, 2:]
        for T in (P.reshape(6, -1), K, A):
            penalty = penalty + ((T @ T.T - torch.eye(6)) ** 2).mean()
    logits = masked(linear(see(w, x, prefixes)[:, 0], head.weight, head.bias), columns)
    method.compared = columns.unique()
    compare_gradients(method, rows, cross_entropy(logits, columns) + 0.1 * penalty)


def test_the_rate_of_coda_prompt_is_the_cosine_of_its_code(make, vit):
    method = make("coda-prompt", backbone=vit, epochs=20)
    expected = [cos(99 * pi * epoch / (200 * (20 - 1))) for epoch in range(20)]
    np.testing.assert_allclose([method.rate_share(epoch) for epoch in range(20)], expected, atol=1e-12)
    assert make("coda-prompt", backbone=vit, epochs=1).rate_share(0) == 1
    assert make("coda-prompt", backbone=vit, epochs=20, schedule="constant").rate_share(19) == 1


# -- MVP --
@pytest.mark.parametrize(("name", "keys"), [("mvp", "published"), ("mvp", "contrastive"), ("mvp-r", "published")])
def test_mvp(name, keys, prepared):
    """Mask, focus and keys; gradients of samples by a backward pass each, as in public code. MVP-R: memory rows too."""
    method, rows = prepared(name, online=True, pool=6, keys=keys)
    if name == "mvp-r":
        rows = method.accompany(rows)
        assert (rows["slot"] >= 0).tolist() == [False] * 9 + [True] * 24
    n = len(rows["labels"])
    images, w = images_and_weights(method, rows)
    experts, general, mask = method.prompts.experts, method.prompts.general, method.mask.mask
    head, columns = method.student.head, columns_of(method, rows)
    with torch.no_grad():
        mask += torch.randn(mask.shape, generator=torch.Generator().manual_seed(3))
        head.weight *= 0.3  # so that no class is certain
    x = query = embed(w, images)
    for i in range(DEPTH - 1):
        query = block(w, i, query)  # the last block and the norm are left out
    distance = 1 - cosine_similarity(query[:, 0][:, None], experts.keys, dim=-1)
    mass = experts.usage.clone() + 1
    assert mass.max() > 10
    chosen = (distance * mass).argmin(1)
    extras = {i: general[i, 0].expand(n, -1, -1) for i in (0, 1)}
    extras |= {i: experts.prompts[chosen, i - 2, 0] for i in (2, 3, 4)}
    features = see(w, x, extras=extras)[:, 0]
    factors = 2 * torch.sigmoid(mask[:, chosen].T)

    W = head.weight.detach().clone().requires_grad_()
    plain = (features.detach() @ W.T + head.bias.detach()) * factors.detach()
    losses = cross_entropy(plain, columns, reduction="none")
    own = torch.stack([torch.autograd.grad(losses[i], W, retain_graph=True)[0][columns[i]] for i in range(n)])
    batch = torch.autograd.grad(losses.mean(), W)[0][columns]
    ignored = 1 - cosine_similarity(own, batch, dim=1)
    assert ignored.max() > 0.1  # they do differ

    scale = 1 - cosine_similarity(head.weight[columns], features, dim=1).detach() + 0.5
    logits = linear(features / scale[:, None], head.weight, head.bias) * factors
    loss = cross_entropy(logits, columns, reduction="none")
    loss = (0.5 * loss + 0.5 * ignored**2 * loss).mean()
    if keys == "published":
        apart = 1 - cosine_similarity(experts.keys[:, None], experts.keys, dim=-1)
        k = (apart[chosen] / mass[chosen][:, None]).exp().mean()
        d = (distance.gather(1, chosen[:, None])[:, 0] / mass[chosen]).exp().mean()
        loss = loss - (k / (d + k) + 1e-6).log()
    else:
        loss = loss + cross_entropy(-distance / 0.1, chosen)
    compare_gradients(method, rows, loss)
    assert torch.equal(experts.usage, mass - 1 + torch.bincount(chosen, minlength=6))  # counted once, by our loss


# -- DAP --
def test_the_centre_of_dap_is_that_of_its_code():
    """There it is renewed when a phase begins: centre * (1 - v) + p_(t-1) * v, v = 1/|D_(t-1)| / sum of 1/|D_j|."""
    rng = np.random.default_rng(0)
    ours, centre, sizes = PromptCentre(), None, []
    for size in (50, 20, 400, 7):
        ours_alpha = ours.alpha(size)
        alpha = (size - min([*sizes, size])) / (max([*sizes, size]) - min([*sizes, size]) + 1e-10)
        assert ours_alpha == pytest.approx(alpha, abs=1e-6)
        prompt = rng.normal(size=(25, 4))
        ours.add(torch.from_numpy(prompt), size)
        sizes.append(size)
        shares = 1 / np.array(sizes) / np.sum(1 / np.array(sizes))
        centre = prompt if centre is None else centre * shares[:-1].sum() + prompt * shares[-1]
        np.testing.assert_allclose(ours.centre(), centre, atol=1e-6)


def test_dap(prepared):
    """Stage 2: CE in the phase + a (1 - cos(g, s)) + (1 - a) (1 - cos(g, p_t)); head on the mean of the 25 tokens."""
    method, rows = prepared("dap", epochs=1)
    images, w = images_and_weights(method, rows)
    head, columns = method.student.head, columns_of(method, rows)
    general, phase = method.student.prompts.general, method.student.prompts.phase
    centre = phase.detach().clone()  # of one earlier phase: its prompt
    method.alpha = 0.3
    with torch.no_grad():
        phase += torch.randn(phase.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    x = embed(w, images)

    def features(prompt):
        tokens = (prompt + w["pos_embed"][0, 0]).expand(9, -1, -1)
        return see(w, torch.cat([x[:, :1], tokens, x[:, 1:]], 1))[:, 1:26].mean(1)

    def loss(prompt):
        return cross_entropy(masked(linear(features(prompt), head.weight, head.bias), columns), columns)

    method.compared = columns.unique()
    near = [1 - cosine_similarity(general.flatten(), other.flatten(), dim=0) for other in (centre, phase.detach())]
    method._stage = 2
    compare_gradients(method, rows, loss(general) + 0.3 * near[0] + 0.7 * near[1])
    method._stage = 1
    compare_gradients(method, rows, loss(phase))


def test_dap_has_one_adam_for_all_phases(digits, make, vit):
    """Its moments go on from phase to phase, but for the prompt of a phase, which is a new parameter in each."""
    method = make("dap", backbone=copy.deepcopy(vit), epochs=1, clip=None)
    method.student.double()
    method.views.plain = method.views.training = lambda pixels, *_: pixels.double() / 255
    prompts, gradients, drawn = method.student.prompts, [], []
    update, rate = method.update, method.options.rate(16)
    began = prompts.general.detach().clone()

    def noted(batch):
        if method._stage == 1 and (not drawn or drawn[-1][1] < len(method.earlier.sizes) + 1):
            drawn.append((prompts.phase.detach().clone(), len(method.earlier.sizes) + 1, []))
        loss = method.loss(batch)
        trained = [prompts.general, prompts.phase]
        general, phase = torch.autograd.grad(loss, trained, allow_unused=True)
        if method._stage == 2:
            gradients.append(general)
        else:
            drawn[-1][2].append(phase)
        update(batch)

    method.update = noted
    ended = []
    for phase in digits.stream(5).phases[:3]:
        digits.teach(method, phase, at_most=32)
        ended.append(prompts.phase.detach().clone())

    def adam(start, gradients):
        m = v = torch.zeros_like(start)
        for t, gradient in enumerate(gradients, 1):
            m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
            start = start - rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + 1e-8)
        return start

    assert len(gradients) == 6
    torch.testing.assert_close(prompts.general.detach(), adam(began, gradients), rtol=1e-6, atol=1e-6)
    for (start, _, own), end in zip(drawn, ended, strict=True):
        torch.testing.assert_close(end, adam(start, own), rtol=1e-6, atol=1e-6)
