"""The surrogate of ``dp-psvi-surrogate``: a normal posterior from few noised answers, which points then represent.

Nothing here sees a row. Every module is a pure function of noised answers and declared facts.

Plan
    ``schedule`` how the budget is spent; ``planning`` the queries, their words, and whose plans are carried out;
    ``setting`` what stays fixed through a run; ``contribution_bounds`` how far a unit may reach; ``declared`` what
    declarations say of columns; ``state`` what is known so far.

Opening
    ``asking`` the queries; ``opening`` their answers, one by one; ``moments``, ``winsorised`` what they say of single
    columns; ``flags``, ``two_valued`` columns of two values.

Rows as they are believed
    ``population`` their number, means and second moments; ``tails`` rows that a normal population has not;
    ``population_information``, ``curvature`` their information, and how it changes with the parameter;
    ``hidden_rows`` what noise may hide of them.

Rounds
    ``rounds`` an information matrix, then a score, then the next parameter. For matrices: ``matrix_metric``,
    ``answer``, ``denoise``, ``memory``, ``columns``. For scores: ``score_metric``, ``disputed``, ``slope``,
    ``elongation``, ``efficiency``, ``directions``, ``scores``. Between parameters: ``carrying``, ``reach``.
    ``mending`` and ``matrices`` keep all of it sound, whatever the answers are.

Isotropic rows
    ``isotropy`` whether rows seem to be; ``single_index`` what scores at zero say then; ``bearing``, ``first_bearing``,
    ``bearing_rounds`` a search that follows them.

Release
    ``release`` the points, and what is said of them; ``doubt`` noise, if the information is wrong as well;
    ``credibility`` whether what is said of noise can be believed.
"""
