/* NumPy's matrix products, off by up to two bits depending on the shapes of their operands.
 *
 * A product of other shapes or of another memory order then never has the same bits, as on some CPU
 * it would not; the same product made twice has. check_cpus.py compiles this and preloads it;
 * ROUNDING_BLAS names the library with the real functions.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

typedef int64_t I;
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, UPPER = 121 };

static void *real(const char *name) {
    static void *library;
    if (!library) library = dlopen(getenv("ROUNDING_BLAS"), RTLD_NOW | RTLD_LOCAL);
    return dlsym(library, name);
}

/* 1 plus -2 to 2 units of rounding, from a hash of what describes the call. */
static double factor(int n, const I *what) {
    uint64_t hash = 1469598103934665603ULL;
    for (int i = 0; i < n; i++) hash = (hash ^ (uint64_t)what[i]) * 1099511628211ULL;
    hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdULL;
    return 1.0 + ((int)((hash >> 40) % 5) - 2) * 2.220446049250313e-16;
}

void scipy_cblas_dgemm64_(int order, int ta, int tb, I m, I n, I k, double alpha, const double *a,
                          I lda, const double *b, I ldb, double beta, double *c, I ldc) {
    static void (*call)(int, int, int, I, I, I, double, const double *, I, const double *, I,
                        double, double *, I);
    if (!call) call = real("scipy_cblas_dgemm64_");
    call(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    double by = factor(8, (I[]){order, ta, tb, m, n, k, lda, ldb});
    I rows = order == ROW_MAJOR ? m : n, columns = order == ROW_MAJOR ? n : m;
    for (I i = 0; i < rows; i++)
        for (I j = 0; j < columns; j++) c[i * ldc + j] *= by;
}

void scipy_cblas_dgemv64_(int order, int ta, I m, I n, double alpha, const double *a, I lda,
                          const double *x, I incx, double beta, double *y, I incy) {
    static void (*call)(int, int, I, I, double, const double *, I, const double *, I, double,
                        double *, I);
    if (!call) call = real("scipy_cblas_dgemv64_");
    call(order, ta, m, n, alpha, a, lda, x, incx, beta, y, incy);
    double by = factor(6, (I[]){order, ta, m, n, lda, 7});
    I length = ta == NO_TRANSPOSE ? m : n;
    for (I i = 0; i < length; i++) y[i * (incy < 0 ? -incy : incy)] *= by;
}

void scipy_cblas_dsyrk64_(int order, int uplo, int trans, I n, I k, double alpha, const double *a,
                          I lda, double beta, double *c, I ldc) {
    static void (*call)(int, int, int, I, I, double, const double *, I, double, double *, I);
    if (!call) call = real("scipy_cblas_dsyrk64_");
    call(order, uplo, trans, n, k, alpha, a, lda, beta, c, ldc);
    double by = factor(7, (I[]){order, uplo, trans, n, k, lda, 9});
    int above = (uplo == UPPER) == (order == ROW_MAJOR);
    for (I i = 0; i < n; i++)
        for (I j = above ? i : 0; j < (above ? n : i + 1); j++) c[i * ldc + j] *= by;
}

double scipy_cblas_ddot64_(I n, const double *x, I incx, const double *y, I incy) {
    static double (*call)(I, const double *, I, const double *, I);
    if (!call) call = real("scipy_cblas_ddot64_");
    return call(n, x, incx, y, incy) * factor(3, (I[]){n, incx, incy});
}
