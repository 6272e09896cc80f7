-- Was a stale or foreign artifact loaded? Loads under a key that something else was compiled under: the key is the
-- same, and a part that it leaves out, the target or the code is not.
SELECT
    loaded.kernel AS kernel,
    loaded.pod AS pod,
    loaded.started AS started,
    compiled.pod AS compiled_by,
    arrayMap(name -> (name, compiled.key_components[name], loaded.key_components[name]),
        arrayFilter(name -> loaded.key_components[name] != compiled.key_components[name],
            arraySort(mapKeys(loaded.key_components)))) AS differing,
    loaded.target != compiled.target AS other_target,
    loaded.identity != compiled.identity AS other_identity
FROM kernel_trips AS loaded
INNER JOIN kernel_trips AS compiled ON loaded.layer = compiled.layer AND loaded.key_id = compiled.key_id
    AND loaded.key_build_id = compiled.key_build_id
WHERE loaded.outcome = 'loaded'
    AND compiled.outcome = 'compiled'
    AND loaded.started > compiled.started
    AND (notEmpty(differing) OR other_target OR other_identity)
ORDER BY loaded.started
