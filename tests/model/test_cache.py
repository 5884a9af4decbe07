"""What decoding remembers: values that never change once handed out."""

from __future__ import annotations

import torch
from torch import Tensor

from transduce.model.cache import CHUNK, DecoderState, KeysValues


def pair(length: int, rows: int = 2) -> tuple[Tensor, Tensor]:
    return torch.randn(rows, 3, length, 4), torch.randn(rows, 3, length, 5)


def test_holds_what_it_is_given() -> None:
    keys, values = pair(6)
    past = KeysValues.of(keys, values)
    assert past.length == 6
    assert torch.equal(past.keys, keys)
    assert torch.equal(past.values, values)


def test_append_adds_at_the_end_over_many_chunks() -> None:
    keys, values = pair(3 * CHUNK + 1)
    past = KeysValues.of(keys[:, :, :1], values[:, :, :1])
    length = 1
    for new in [1, 2, CHUNK, 1, CHUNK + 7, 1, 1]:
        past = past.append(keys[:, :, length : length + new], values[:, :, length : length + new])
        length += new
        assert past.length == length
        assert torch.equal(past.keys, keys[:, :, :length])
        assert torch.equal(past.values, values[:, :, :length])


def test_most_appends_copy_nothing() -> None:
    past = KeysValues.of(*pair(1))
    places = set()
    for _ in range(4 * CHUNK):
        past = past.append(*pair(1))
        places.add(past.keys.data_ptr())
    assert len(places) <= 4


def test_parent_and_siblings_stay_as_they_were() -> None:
    parent = KeysValues.of(*pair(2)).append(*pair(1))  # has spare room
    keys, values = parent.keys.clone(), parent.values.clone()
    news = [pair(1) for _ in range(3)]
    children = [parent.append(*new) for new in news]
    grandchildren = [child.append(*pair(2)) for child in children]
    late = parent.append(*pair(5))
    assert parent.length == 3
    assert torch.equal(parent.keys, keys)
    assert torch.equal(parent.values, values)
    for child, grandchild, (new_keys, new_values) in zip(children, grandchildren, news, strict=True):
        for one in (child, grandchild, late):
            assert torch.equal(one.keys[:, :, :3], keys)
        for one in (child, grandchild):
            assert torch.equal(one.keys[:, :, 3:4], new_keys)
            assert torch.equal(one.values[:, :, 3:4], new_values)


def test_rows_keep_copy_and_reorder() -> None:
    past = KeysValues.of(*pair(4, rows=3)).append(*pair(1, rows=3))
    index = torch.tensor([2, 0, 0, 1, 2])
    chosen = past.rows(index)
    assert chosen.length == 5
    assert torch.equal(chosen.keys, past.keys[index])
    assert torch.equal(chosen.values, past.values[index])
    before = past.keys.clone()
    chosen.append(*pair(1, rows=5)).keys.zero_()
    assert torch.equal(past.keys, before)


def test_no_rows_is_a_valid_choice() -> None:
    chosen = KeysValues.of(*pair(4)).rows(torch.tensor([], dtype=torch.long))
    assert chosen.keys.shape == (0, 3, 4, 4)


def test_gradients_flow_through_every_append() -> None:
    keys, values = (x.requires_grad_() for x in pair(1))
    past = KeysValues.of(*pair(2)).append(keys, values).append(*pair(1))
    total = past.keys.sum() + 2 * past.values.sum()
    of_keys, of_values = torch.autograd.grad(total, (keys, values))
    assert torch.equal(of_keys, torch.ones_like(keys))
    assert torch.equal(of_values, 2 * torch.ones_like(values))


def state(sentences: int, hypotheses: int) -> DecoderState:
    mask = torch.rand(sentences, 1, 1, 7) < 0.5
    memory = tuple(KeysValues.of(*pair(7, sentences)) for _ in range(2))
    return DecoderState(memory, mask, tuple(KeysValues.of(*pair(3, hypotheses)) for _ in range(2)), 3)


def test_rows_of_a_state_leave_the_memory_alone() -> None:
    parent = state(sentences=2, hypotheses=4)
    child = parent.rows(torch.tensor([1, 1, 2, 3, 3, 3]))
    assert child.memory is parent.memory
    assert child.memory_mask is parent.memory_mask
    assert (child.length, child.sentences) == (3, 2)
    for layer, old in zip(child.self_attention, parent.self_attention, strict=True):
        assert torch.equal(layer.keys, old.keys[[1, 1, 2, 3, 3, 3]])


def test_sentences_select_memory_and_mask() -> None:
    parent = state(sentences=3, hypotheses=6)
    child = parent.rows(torch.tensor([5, 4, 0, 1]), torch.tensor([2, 0]))
    assert child.sentences == 2
    assert child.memory_mask is not None
    assert parent.memory_mask is not None
    assert torch.equal(child.memory_mask, parent.memory_mask[[2, 0]])
    for layer, old in zip(child.memory, parent.memory, strict=True):
        assert torch.equal(layer.keys, old.keys[[2, 0]])
        assert torch.equal(layer.values, old.values[[2, 0]])
    bare = DecoderState(parent.memory, None, parent.self_attention, 3)
    assert bare.rows(torch.tensor([0]), torch.tensor([0])).memory_mask is None
