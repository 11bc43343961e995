-- Which memories have each of some words, for scoring. A word that very many have is looked for only among those that
-- have a rarer one: it hardly tells them apart, and reading all of them is most of the work. How many have it is
-- estimated then, from a sample. `most` is how many may have a word that is not so common.
CREATE FUNCTION {schema}.postings(of_tenant text, of_workspace text, queries text[], most bigint)
RETURNS TABLE (number integer, seq bigint, frequency double precision)
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL SAFE ROWS 200
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    stored     bigint;
    shares     double precision[];
    rarest     double precision;
    left_over  double precision;
    together   text;
    hits       bigint[];
    candidates bigint[] := '{}';
BEGIN
    IF of_tenant IS NULL OR of_tenant IS DISTINCT FROM nullif(current_setting('recollect.tenant', true), '') THEN
        RAISE insufficient_privilege USING MESSAGE = 'the tenant is not the one of this transaction';
    END IF;
    SELECT p.memories INTO stored FROM {schema}.places p WHERE p.tenant = of_tenant AND p.workspace = of_workspace;
    shares := array_fill(0::double precision, ARRAY[coalesce(array_length(queries, 1), 0)]);
    IF stored > most THEN
        SELECT array_agg(word.share ORDER BY word.n), min(word.share) INTO shares, rarest FROM (
            SELECT q.n, avg((s.words @@ q.query::tsquery)::integer)::double precision AS share
            FROM {schema}.search s CROSS JOIN unnest(queries) WITH ORDINALITY q (query, n)
            WHERE s.tenant = of_tenant AND s.workspace = of_workspace AND s.part = 0 AND s.seq = ANY (ARRAY(
                SELECT 1 + floor((step + step * 0.6180339887 - floor(step * 0.6180339887)) * stored / 250.0)::bigint
                FROM generate_series(0, 249) step))
            GROUP BY q.n) word;
    END IF;
    -- Where all words are common, those count that have several of the rarest.
    left_over := stored;
    IF rarest * stored > most THEN
        FOR number IN SELECT n FROM generate_subscripts(queries, 1) n ORDER BY shares[n], n LOOP
            together := coalesce(together || ' & ', '') || '(' || queries[number] || ')';
            left_over := left_over * shares[number];
            EXIT WHEN left_over <= most;
        END LOOP;
        SELECT array_agg(DISTINCT s.seq) INTO hits FROM {schema}.search s
            WHERE s.tenant = of_tenant AND s.workspace = of_workspace AND s.words @@ together::tsquery;
        IF array_length(hits, 1) >= 400 THEN
            candidates := hits;
            rarest := 0;
        END IF;
    END IF;
    FOR number IN 1 .. coalesce(array_length(queries, 1), 0) LOOP
        CONTINUE WHEN shares[number] * stored > most AND shares[number] > rarest;
        SELECT array_agg(s.seq) INTO hits FROM {schema}.search s
            WHERE s.tenant = of_tenant AND s.workspace = of_workspace AND s.words @@ queries[number]::tsquery
            AND (s.part = 0 OR NOT EXISTS (SELECT FROM {schema}.search e WHERE e.tenant = of_tenant
                AND e.workspace = of_workspace AND e.seq = s.seq AND e.part < s.part
                AND e.words @@ queries[number]::tsquery));
        RETURN QUERY SELECT number, hit, NULL::double precision FROM unnest(hits) hit;
        candidates := candidates || hits;
    END LOOP;
    FOR number IN 1 .. coalesce(array_length(queries, 1), 0) LOOP
        CONTINUE WHEN NOT coalesce(shares[number] * stored > most AND shares[number] > rarest, false);
        RETURN QUERY SELECT DISTINCT number, s.seq, shares[number] * stored FROM {schema}.search s
            WHERE s.tenant = of_tenant AND s.workspace = of_workspace AND s.seq = ANY (candidates)
            AND s.words @@ queries[number]::tsquery;
    END LOOP;
END
$$;
REVOKE ALL ON FUNCTION {schema}.postings(text, text, text[], bigint) FROM PUBLIC;
