# Standard errors of weighted least squares that allow for leverage, on the Mroz data.
# Rscript tests/oracles/weighting.R mroz.csv > tests/oracles/weighting.json
# mroz.csv is load_mroz().to_csv(index=False).
suppressMessages({library(sandwich); library(survey)})
m <- read.csv(commandArgs(TRUE)[1])
m$w <- 1 + m$kids618
m$y <- log(m$faminc)

# HC3, over residuals divided by 1 - h; CR3, over clusters.
fit <- lm(y ~ educ + exper, m, weights = w)
plain <- lm(y ~ educ + exper, m)
hc3 <- vcovHC(fit, type = "HC3")
cr3 <- vcovCL(plain, cluster = m$age, type = "HC3", cadjust = FALSE)

# Strata are city or not, units are ages in each: linearized, and the jackknife that leaves out a
# unit and weighs the others of its stratum up.
design <- svydesign(ids = ~age, strata = ~city, weights = ~w, data = m, nest = TRUE)
linear <- svyglm(y ~ educ + exper, design)
jackknife <- as.svrepdesign(design, type = "JKn", mse = TRUE)
replicated <- svyglm(y ~ educ + exper, jackknife)

write <- function(x) paste0("[", paste(formatC(x, digits = 15, format = "g"), collapse = ", "), "]")
cat("{\n")
cat(' "coef": ', write(coef(fit)), ",\n", sep = "")
cat(' "hc3": ', write(sqrt(diag(hc3))), ",\n", sep = "")
cat(' "plain_coef": ', write(coef(plain)), ",\n", sep = "")
cat(' "cr3": ', write(sqrt(diag(cr3))), ",\n", sep = "")
cat(' "linearized": ', write(SE(linear)), ",\n", sep = "")
cat(' "jkn": ', write(SE(replicated)), ",\n", sep = "")
cat(' "units": ', nrow(unique(m[c("city", "age")])), ",\n", sep = "")
cat(' "df": ', degf(design), "\n}\n", sep = "")
