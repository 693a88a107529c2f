"""The kernel of `training.gpu`; imported only on a GPU, since it needs Triton."""

# Triton reads annotations at run time, and accepts only its own.
import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def sums_of_rows(  # type: ignore[no-untyped-def]
    matrix,
    contrast,
    weight,
    sums,
    m,
    stride,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    ROWS: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    """Write one program's sums over its share of the rows: pulls, then absolute residuals.

    A tile is ROWS rows of WIDTH columns, padded to a power of two; programs take tiles in turn.
    Sums within a tile use the precision of the rows, and sums over tiles float64.
    """
    program = tl.program_id(0)
    columns = tl.arange(0, PADDED)
    inside = columns < WIDTH
    c = tl.load(contrast + columns, mask=inside, other=0.0)
    pulls = tl.zeros((PADDED,), tl.float64)
    absolute = tl.zeros((ROWS,), tl.float64)
    for tile in range(program, tl.cdiv(m, ROWS), tl.num_programs(0)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        there = rows < m
        at = rows[:, None].to(tl.int64) * stride + columns[None, :]
        x = tl.load(matrix + at, mask=there[:, None] & inside[None, :], other=0.0)
        residual = tl.sum(x * c[None, :], axis=1)
        pull = tl.where(residual > 0.0, 1.0, tl.where(residual < 0.0, -1.0, 0.0)).to(x.dtype)
        if WEIGHTED:
            pull *= tl.load(weight + rows, mask=there, other=0.0)
        pulls += tl.sum(x * pull[:, None], axis=0).to(tl.float64)
        absolute += (pull * residual).to(tl.float64)
    tl.store(sums + program * (PADDED + 1) + columns, pulls)
    tl.store(sums + program * (PADDED + 1) + PADDED, tl.sum(absolute))
