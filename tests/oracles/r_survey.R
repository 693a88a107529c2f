# Writes r_survey_rows.csv.gz and r_survey.json into the current folder: `Rscript r_survey.R`.
# R 4.2.2, survey 4.1-1, sandwich 3.0-2, numDeriv 2016.8-1.1, jsonlite 1.8.4.
#
# The estimates maximise the weighted log-likelihood of the Heckman model, written out below, and solve
# the two steps. Covariances by a design are those of survey: `svytotal` of the scores (`svrVar` over
# the replicates of `as.svrepdesign`) and numDeriv's Jacobian; by two clusterings, `vcovCL` of sandwich.
suppressMessages({library(survey); library(sandwich)})

set.seed(30)
n <- 500
stratum <- sample(1:6, n, TRUE)
unit <- sample(1:4, n, TRUE)
alike <- matrix(0.4 * rnorm(24), 6)[cbind(stratum, unit)]
rows <- data.frame(stratum, unit, psu = stratum * 10 + unit, units_there = c(10, 12, 15, 20, 30, 40)[stratum])
rows$half <- ifelse(unit <= 2, 1, 2) + stratum * 10                     # two units in each stratum
rows$lone <- ifelse(stratum == 6, 60, rows$psu)                          # the last stratum has one unit
rows$weight <- round(runif(n, 1, 4), 2)
rows$firm <- sample(1:25, n, TRUE)
rows$year <- sample(1:18, n, TRUE)
rows$rural <- as.integer(runif(n) < 0.65)
# Rows of a firm are alike, and those of a year, in all columns: no repair is needed of either covariance.
both <- function() rnorm(n) + 0.7 * rnorm(25)[rows$firm] + 0.7 * rnorm(18)[rows$year]
rows$x <- round(both(), 3)
rows$z <- round(both(), 3)
u <- both() + alike
y <- 1 + 0.8 * rows$x + 0.6 * u + both()
rows$y <- ifelse(0.3 + 0.5 * rows$x + 0.9 * rows$z + u > 0, round(y, 3), NA)

seen <- !is.na(rows$y)
outcome <- ifelse(seen, rows$y, 0)
S <- cbind(1, rows$x, rows$z)
P <- cbind(1, rows$x)

# theta: selection (3), prediction (2), log sigma, atanh rho; a row's log-likelihood and scores.
parts <- function(theta) {
  index <- drop(S %*% theta[1:3])
  sigma <- exp(theta[6]); rho <- tanh(theta[7]); root <- sqrt(1 - rho^2)
  r <- (outcome - drop(P %*% theta[4:5])) / sigma
  list(index = index, sigma = sigma, rho = rho, root = root, r = r, a = (index + rho * r) / root)
}
mills <- function(a) exp(dnorm(a, log = TRUE) - pnorm(a, log.p = TRUE))
loglik <- function(theta) with(parts(theta), ifelse(
  seen, pnorm(a, log.p = TRUE) + dnorm(r, log = TRUE) - log(sigma), pnorm(-index, log.p = TRUE)))
scores <- function(theta) with(parts(theta), {
  m <- mills(a)
  d_index <- ifelse(seen, m / root, -mills(-index))
  d_mean <- ifelse(seen, (r - m * rho / root) / sigma, 0)
  d_log_sigma <- ifelse(seen, r^2 - 1 - m * rho * r / root, 0)
  d_atanh <- ifelse(seen, m * (r + rho * index) / root, 0)               # d rho / d atanh rho = 1 - rho^2
  cbind(S * d_index, P * d_mean, d_log_sigma, d_atanh)
})
solve_ml <- function(w, start = c(0, 0, 0, 0, 0, 0, 0)) {
  theta <- optim(start, function(t) -sum(w * loglik(t)), function(t) -colSums(w * scores(t)),
                 method = "BFGS", control = list(maxit = 2000, reltol = 1e-14))$par
  for (step in 1:6)                                                      # Newton, to a gradient of nothing
    theta <- theta - solve(numDeriv::jacobian(function(t) colSums(w * scores(t)), theta), colSums(w * scores(theta)))
  stopifnot(max(abs(colSums(w * scores(theta)))) < 1e-7)
  drop(theta)
}

# The two steps as one set of equations: the probit's scores, and the normal equations with lambda.
step_scores <- function(theta) {
  index <- drop(S %*% theta[1:3]); lambda <- mills(index)
  W <- cbind(P, lambda)
  e <- ifelse(seen, outcome - drop(W %*% theta[4:6]), 0)
  cbind(S * ifelse(seen, lambda, -mills(-index)), W * e)
}
solve_steps <- function(w) {
  gamma <- rep(0, 3)
  for (step in 1:40) {
    s <- S * ifelse(seen, mills(drop(S %*% gamma)), -mills(-drop(S %*% gamma)))
    J <- numDeriv::jacobian(function(g) colSums(w * S * ifelse(seen, mills(drop(S %*% g)), -mills(-drop(S %*% g)))), gamma)
    gamma <- gamma - solve(J, colSums(w * s))
  }
  W <- cbind(P, mills(drop(S %*% gamma)))[seen, ]
  beta <- solve(crossprod(W, W * w[seen]), crossprod(W, w[seen] * outcome[seen]))
  theta <- c(gamma, beta)
  stopifnot(max(abs(colSums(w * step_scores(theta)))) < 1e-7)
  drop(theta)
}

bread <- function(f, w, theta) solve(numDeriv::jacobian(function(t) colSums(w * f(t)), theta))
linearized <- function(design, f, solve_it) {
  w <- weights(design)
  theta <- solve_it(w)
  B <- bread(f, w, theta)
  meat <- vcov(svytotal(f(theta), design))
  list(estimate = theta, vcov = B %*% meat %*% t(B), df = degf(design))
}

out <- list()
plain <- svydesign(~unit, strata = ~stratum, weights = ~weight, data = rows, nest = TRUE)
finite <- svydesign(~unit, strata = ~stratum, weights = ~weight, fpc = ~units_there, data = rows, nest = TRUE)
lone <- svydesign(~lone, strata = ~stratum, weights = ~weight, data = rows)
rowwise <- svydesign(~1, strata = ~stratum, weights = ~weight, data = rows)
for (method in c("ml", "two-step")) {
  f <- if (method == "ml") scores else step_scores
  solve_it <- if (method == "ml") solve_ml else solve_steps
  add <- function(name, value) out[[paste(method, name)]] <<- value
  add("strata and units", linearized(plain, f, solve_it))
  add("finite populations", linearized(finite, f, solve_it))
  add("strata of rows", linearized(rowwise, f, solve_it))
  options(survey.lonely.psu = "certainty"); add("single certainty", linearized(lone, f, solve_it))
  options(survey.lonely.psu = "adjust"); add("single centered", linearized(lone, f, solve_it))
  options(survey.lonely.psu = "fail")

  # A subpopulation: totals over the subset, which keeps the units of the design.
  w <- rows$weight * rows$rural
  theta <- solve_it(w)
  B <- bread(f, w, theta)
  inside <- subset(finite, rural == 1)
  meat <- vcov(svytotal(f(theta)[rows$rural == 1, ], inside))
  add("subpopulation", list(estimate = theta, vcov = B %*% meat %*% t(B), df = degf(inside)))

  halves <- svydesign(~half, strata = ~stratum, weights = ~weight, data = rows)
  kinds <- list(jackknife = as.svrepdesign(plain, type = "JKn"),
                brr = as.svrepdesign(halves, type = "BRR"),
                fay = as.svrepdesign(halves, type = "Fay", fay.rho = 0.3))
  for (kind in names(kinds)) {
    design <- kinds[[kind]]
    W <- weights(design, type = "analysis")
    at <- t(apply(W, 2, solve_it))
    own <- solve_it(rows$weight)
    for (mse in c(FALSE, TRUE)) {
      V <- svrVar(at, design$scale, design$rscales, mse = mse, coef = own)
      attributes(V) <- list(dim = dim(V))
      add(paste(kind, if (mse) "about the estimate" else "about the mean"),
          list(estimate = own, vcov = V, df = degf(design)))
    }
    if (method == "ml") {
      if (kind == "jackknife") out$rscales <- as.numeric(design$rscales)
      # Without the design, degrees of freedom are the rank of the weights less one.
      alone <- svrepdesign(weights = ~weight, repweights = W, data = rows, type = "other",
                           scale = design$scale, rscales = design$rscales, combined.weights = TRUE)
      out[["replicates df"]][[kind]] <- degf(alone)
      colnames(W) <- paste0(kind, seq_len(ncol(W)))
      rows <- cbind(rows, round(W, 10))
    }
  }

  # Two clusterings without weights: G / (G - 1) of each, and of their cells. The middle is sandwich's.
  theta <- solve_it(rep(1, n))
  model <- structure(list(scores = f(theta)), class = "solved")
  registerS3method("estfun", "solved", function(x, ...) x$scores, envir = asNamespace("sandwich"))
  registerS3method("nobs", "solved", function(object, ...) n, envir = asNamespace("stats"))
  B <- bread(f, rep(1, n), theta)
  meat <- n * meatCL(model, cluster = rows[c("firm", "year")], type = "HC0", cadjust = TRUE)
  add("two clusterings", list(estimate = theta, vcov = B %*% meat %*% t(B)))
}
write.csv(rows, gzfile("r_survey_rows.csv.gz"), row.names = FALSE, na = "")
writeLines(jsonlite::toJSON(out, digits = I(12), auto_unbox = TRUE), "r_survey.json")
