{{/* The ConfigMap with the rules. */}}
{{- define "ratelimit.rulesConfigMap" -}}
{{- .Values.rules.existingConfigMap | default (printf "%s-rules" (include "tollgate.fullname" .)) -}}
{{- end -}}

{{/*
Not empty when metrics wait for scrapes: otherwise there is nothing to scrape, and no series for
alerts.
*/}}
{{- define "ratelimit.servesMetrics" -}}
{{- $settings := .Values.settings -}}
{{- if and (ne (toString $settings.USE_PULLMETRICS) "false") (ne (toString $settings.DISABLE_STATS) "true") }}true{{ end -}}
{{- end -}}

{{/* Not empty when the counter API is reached over the network. */}}
{{- define "ratelimit.servesCounterApi" -}}
{{- if and .Values.counterApi.enabled .Values.counterApi.tls.existingSecret }}true{{ end -}}
{{- end -}}

{{/* Counter backend: `redis`, `memcache` or `memory`. */}}
{{- define "ratelimit.backend" -}}
{{- .Values.settings.BACKEND_TYPE | default "redis" -}}
{{- end -}}

{{/*
(dict "Values" … "prefix" "ratelimit."): what keeps the service from starting, a line each;
addresses may be in Secrets.
*/}}
{{- define "ratelimit.problems" -}}
{{- $values := .Values -}}
{{- $settings := $values.settings -}}
{{- if eq (include "ratelimit.backend" .) "redis" -}}
{{- range $instance := list "KVSTORE" "KVSTORE_PERSECOND" -}}
{{- $url := index $settings (printf "%s_URL" $instance) -}}
{{- $named := regexMatch "^ *[^ :/@,]+ *," (toString $url) -}}
{{- if and (eq (toString (index $settings (printf "%s_TYPE" $instance))) "sentinel") $url (not $named) }}
{{ $.prefix }}settings.{{ $instance }}_URL begins with the name by which the sentinels know the master: mymaster,sentinel-0:26379,sentinel-1:26379
{{- end -}}
{{- end -}}
{{- else if eq (include "ratelimit.backend" .) "memcache" -}}
{{- if and $settings.MCACHE_HOST_PORT $settings.MCACHE_SRV }}
{{ .prefix }}settings.MCACHE_HOST_PORT and {{ .prefix }}settings.MCACHE_SRV: one of them, not both
{{- else if not (or (include "tollgate.maySet" (list . "MCACHE_HOST_PORT")) (include "tollgate.maySet" (list . "MCACHE_SRV"))) }}
{{ .prefix }}settings.MCACHE_HOST_PORT, such as memcached-0:11211,memcached-1:11211, because of {{ .prefix }}settings.BACKEND_TYPE=memcache
{{- end -}}
{{- end -}}
{{- with $values.rules -}}
{{- if and (eq .source "files") (not .existingConfigMap) (not .files) }}
{{ $.prefix }}rules.files or {{ $.prefix }}rules.existingConfigMap, because of {{ $.prefix }}rules.source=files
{{- end -}}
{{- end -}}
{{- with $values.counterApi -}}
{{- if .enabled -}}
{{- $verifies := or .tls.requireClientCertificate (include "tollgate.maySet" (list $ "ADMIN_TLS_CLIENT_CACERT")) -}}
{{- $hasToken := or (include "tollgate.maySet" (list $ "ADMIN_TOKEN")) (include "tollgate.maySet" (list $ "ADMIN_KEYS_TOKEN")) -}}
{{- if not (or $verifies $hasToken) }}
{{ $.prefix }}secretSettings.ADMIN_TOKEN or {{ $.prefix }}counterApi.tls.requireClientCertificate, because of {{ $.prefix }}counterApi.enabled: {name: counter-api, key: token}
{{- end -}}
{{- end -}}
{{- if and .tls.requireClientCertificate (not .tls.existingSecret) }}
{{ $.prefix }}counterApi.tls.existingSecret, because of {{ $.prefix }}counterApi.tls.requireClientCertificate
{{- end -}}
{{- end -}}
{{- include "tollgate.problems" . }}
{{- end -}}

{{/*
(dict "Values" … "namespace" … "secret" …): what an operator has to do, or to know, about counters; empty when nothing is left to do.
*/}}
{{- define "ratelimit.storeNote" -}}
{{- $settings := .Values.settings -}}
{{- $backend := include "ratelimit.backend" . -}}
{{- if and (eq $backend "redis") (not $settings.KVSTORE_URL) (not .Values.secretSettings.KVSTORE_URL) }}

The rate limit service counts in Redis and reads its address from a Secret. Create it; Pods restart until it exists:

  kubectl -n {{ .namespace }} create secret generic {{ .secret }} \
{{- if eq (toString $settings.KVSTORE_TYPE) "sentinel" }}
    --from-literal=KVSTORE_URL=mymaster,sentinel-0:26379,sentinel-1:26379,sentinel-2:26379 \
    --from-literal=KVSTORE_AUTH=password --from-literal=KVSTORE_SENTINEL_AUTH=password
{{- else if eq (toString $settings.KVSTORE_TYPE) "cluster" }}
    --from-literal=KVSTORE_URL=redis-0:6379,redis-1:6379,redis-2:6379 --from-literal=KVSTORE_AUTH=password
{{- else }}
    --from-literal=KVSTORE_URL=redis://:password@host:6379
{{- end }}
{{- else if eq $backend "memory" }}
{{- if or (gt (int .Values.replicas) 1) .Values.autoscaling.enabled }}

Each Pod of the rate limit service counts in its own memory: a limit of n allows up to n requests per Pod.
{{- end }}
{{- end }}
{{- end -}}
