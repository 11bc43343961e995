-- Which memories have each of some words, for scoring. A word that very many have is looked for only among those that
-- have a rarer one, if these are enough: it hardly tells them apart, and reading all of them is most of the work. How
-- many have it is estimated then, from a sample. `most` is how many may have a word that is not so common.
CREATE FUNCTION {schema}.postings(of_tenant text, of_workspace text, queries text[], most bigint)
RETURNS TABLE (number integer, seq bigint, frequency double precision)
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL SAFE ROWS 200
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    stored     bigint;
    sampled    bigint[];
    share      double precision;
    shares     double precision[];
    together   text;
    left_over  double precision;
    hits       bigint[];
    candidates bigint[] := '{}';
BEGIN
    IF of_tenant IS NULL OR of_tenant IS DISTINCT FROM nullif(current_setting('recollect.tenant', true), '') THEN
        RAISE insufficient_privilege USING MESSAGE = 'the tenant is not the one of this transaction';
    END IF;
    SELECT p.memories INTO stored FROM {schema}.places p WHERE p.tenant = of_tenant AND p.workspace = of_workspace;
    shares := array_fill(0::double precision, ARRAY[coalesce(array_length(queries, 1), 0)]);
    left_over := stored;
    IF stored > most THEN
        -- One of each stretch, at changing distances: every other turn of a conversation is of the same speaker.
        sampled := ARRAY(
            SELECT 1 + floor((step + step * 0.6180339887 - floor(step * 0.6180339887)) * stored / 250.0)::bigint
            FROM generate_series(0, 249) step);
        FOR number IN 1 .. coalesce(array_length(queries, 1), 0) LOOP
            SELECT coalesce(avg((s.words @@ queries[number]::tsquery)::integer), 0) INTO share
                FROM {schema}.search s WHERE s.tenant = of_tenant AND s.workspace = of_workspace AND s.part = 0
                AND s.seq = ANY (sampled);
            shares[number] := share;
        END LOOP;
        -- Where all words are common, those come first that have several of the rarest.
        IF (SELECT min(s) FROM unnest(shares) s) * stored > most THEN
            FOR number IN SELECT n FROM generate_subscripts(queries, 1) n ORDER BY shares[n], n LOOP
                together := coalesce(together || ' & ', '') || '(' || queries[number] || ')';
                left_over := left_over * shares[number];
                EXIT WHEN left_over <= most;
            END LOOP;
            SELECT array_agg(DISTINCT s.seq) INTO hits FROM {schema}.search s
                WHERE s.tenant = of_tenant AND s.workspace = of_workspace AND s.words @@ together::tsquery;
            candidates := coalesce(hits, '{}');
        END IF;
    END IF;
    -- The rarest first. A common one is looked for everywhere while there is not enough to choose from.
    FOR number IN SELECT n FROM generate_subscripts(queries, 1) n ORDER BY shares[n], n LOOP
        IF shares[number] * stored > most AND array_length(candidates, 1) >= 400 THEN
            RETURN QUERY SELECT DISTINCT number, s.seq, shares[number] * stored FROM {schema}.search s
                WHERE s.tenant = of_tenant AND s.workspace = of_workspace AND s.seq = ANY (candidates)
                AND s.words @@ queries[number]::tsquery;
            CONTINUE;
        END IF;
        SELECT array_agg(s.seq) INTO hits FROM {schema}.search s
            WHERE s.tenant = of_tenant AND s.workspace = of_workspace AND s.words @@ queries[number]::tsquery
            AND (s.part = 0 OR NOT EXISTS (SELECT FROM {schema}.search e WHERE e.tenant = of_tenant
                AND e.workspace = of_workspace AND e.seq = s.seq AND e.part < s.part
                AND e.words @@ queries[number]::tsquery));
        RETURN QUERY SELECT number, hit, NULL::double precision FROM unnest(hits) hit;
        candidates := candidates || hits;
    END LOOP;
END
$$;
REVOKE ALL ON FUNCTION {schema}.postings(text, text, text[], bigint) FROM PUBLIC;
