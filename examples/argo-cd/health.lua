-- Health of a RateLimitConfig or an AccessPolicy for Argo CD, the same script for both:
-- resource.customizations.health.ratelimit.tollgate.dev_RateLimitConfig
-- resource.customizations.health.policy.tollgate.dev_AccessPolicy
local status = obj.status or {}
if status.observedGeneration ~= obj.metadata.generation then
  return { status = 'Progressing', message = 'waiting for the xDS server' }
end
local by_type = {}
for _, condition in ipairs(status.conditions or {}) do
  by_type[condition.type] = condition
end
local stalled, ready = by_type.Stalled, by_type.Ready
if stalled and stalled.status == 'True' then
  return { status = 'Degraded', message = stalled.message }
end
if ready and ready.status == 'True' then
  return { status = 'Healthy', message = ready.message }
end
return { status = 'Progressing', message = ready and ready.message or 'waiting for conditions' }
