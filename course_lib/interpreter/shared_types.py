"""Compute each value that depends on a dtype and a shape alone only once, not again at every
operation of a kernel.

The stock interpreter makes the type, the shape and NumPy's dtype anew for each intermediate value,
and compares shapes number by number. That takes much of the time of a kernel.
"""

from __future__ import annotations

from typing import Any


def share_types() -> None:
    """Let all values of a dtype and a shape share the objects that were made for the first of them.

    Nothing changes a shape after it was made. Two values that share one shape object need no
    comparison.

    Raises: AttributeError if this Triton makes types or shapes in another way.
    """
    from triton.language import core
    from triton.language.semantic import TritonSemantic
    from triton.runtime import interpreter

    find_dtype = interpreter._get_np_dtype
    make_type = core.block_type.__init__
    make_tensor = core.tensor.__init__
    is_equal, make_element = core.dtype.__eq__, core.block_type.with_element_ty
    stock_cast, promote = TritonSemantic.cast, TritonSemantic.computation_type_impl
    broadcast = TritonSemantic.broadcast_impl_value
    lists = (list, core.tuple)
    dtypes: dict[str, Any] = {}  # NumPy's dtype, by the name of Triton's
    shapes: dict[tuple, Any] = {}  # the shape object that all types share, by sizes
    sizes_of: dict[int, tuple] = {}  # the sizes, by the id of a shared shape, which is never freed
    types: dict[tuple, dict] = {}  # the attributes of the type of a block, by dtype and sizes
    # The attributes of a tensor that depend on its shape, by the id of the shape, 0 for none.
    tensors: dict[int, dict] = {}
    # the type of a block, by the id of its shape and the name of its plain dtype
    blocks: dict[tuple, Any] = {}
    promoted: dict[tuple, Any] = {}  # the dtype in which two operands are computed, by their types

    def _get_np_dtype(kind):
        name = kind.scalar.name
        if name not in dtypes:
            dtypes[name] = find_dtype(kind)
        return dtypes[name]

    def find_sizes(shape) -> tuple | None:
        """Return the sizes if all are plain numbers, else None: Triton then accepts or refuses the
        shape."""
        sizes = sizes_of.get(id(shape))
        if sizes is not None or not isinstance(shape, lists):
            return sizes
        return tuple(shape) if all(type(size) is int for size in shape) else None

    def make_block_type(self, element_ty, shape):
        name = getattr(element_ty, "name", None)
        attributes = types.get((name, find_sizes(shape)))
        if attributes is None:
            make_type(self, element_ty, shape)
            sizes = tuple(self.shape)
            self.shape = shapes.setdefault(sizes, self.shape)
            sizes_of[id(self.shape)] = sizes
            types[name, sizes] = dict(vars(self))
        else:
            vars(self).update(attributes)
            self.element_ty = element_ty

    def make_value(self, handle, type):
        key = id(type.shape) if type.is_block() else 0
        attributes = tensors.get(key)
        if attributes is None:
            make_tensor(self, handle, type)
            if not key or key in sizes_of:
                tensors[key] = {
                    name: value for name, value in vars(self).items() if name in ("shape", "numel")
                }
        else:
            vars(self).update(attributes)
            self.handle, self.type, self.dtype = handle, type, type.scalar

    def is_same(self, other):
        return self is other or is_equal(self, other)

    def with_element_ty(self, scalar_ty):
        # two pointer types of the same name may point to different types
        if type(scalar_ty) is not core.dtype:
            return make_element(self, scalar_ty)
        key = id(self.shape), scalar_ty.name
        block = blocks.get(key)
        if block is None:
            block = make_element(self, scalar_ty)
            if key[0] in sizes_of:
                blocks[key] = block
        return block

    def cast(self, input, dst_ty, fp_downcast_rounding=None):
        return (
            input
            if input.type.scalar is dst_ty.scalar
            else stock_cast(self, input, dst_ty, fp_downcast_rounding)
        )

    def computation_type_impl(self, a_ty, a_is_scalar, b_ty, b_is_scalar, div_or_mod):
        key = a_ty.name, a_is_scalar, b_ty.name, b_is_scalar, div_or_mod
        common_dtype = promoted.get(key)
        if common_dtype is None:  # a refusal raises, and is not kept
            common_dtype = promoted[key] = promote(
                self, a_ty, a_is_scalar, b_ty, b_is_scalar, div_or_mod
            )
        return common_dtype

    def splat(self, value, like):
        kind = like.with_element_ty(value.type.scalar)
        return self.tensor(self.builder.create_splat(kind, value.handle), kind)

    def broadcast_impl_value(self, lhs, rhs):
        left, right = lhs.type, rhs.type
        if left.is_block():
            if not right.is_block():
                return lhs, splat(self, rhs, left)
            if left.shape is right.shape:
                return lhs, rhs
        elif right.is_block():
            return splat(self, lhs, right), rhs
        return broadcast(self, lhs, rhs)

    interpreter._get_np_dtype = _get_np_dtype
    core.block_type.__init__ = make_block_type
    core.tensor.__init__ = make_value
    core.dtype.__eq__ = is_same
    core.block_type.with_element_ty = with_element_ty
    TritonSemantic.cast, TritonSemantic.computation_type_impl = cast, computation_type_impl
    TritonSemantic.broadcast_impl_value = broadcast_impl_value
