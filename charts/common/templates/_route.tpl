{{/* An Ingress and an HTTPRoute to the port `http` of a chart, and what they need. */}}

{{/* (list hosts url): the hosts, as a JSON list: the configured ones, or that of the URL. */}}
{{- define "tollgate.externalHosts" -}}
{{- $hosts := index . 0 -}}
{{- $url := index . 1 -}}
{{- if and (not $hosts) $url }}{{ $hosts = list (get (urlParse $url) "hostname") }}{{ end -}}
{{- toJson $hosts -}}
{{- end -}}

{{/* (list context url): the Ingress, where the URL leads. */}}
{{- define "tollgate.ingress" -}}
{{- $context := index . 0 -}}
{{- $url := index . 1 -}}
{{- with $context.Values.ingress -}}
{{- if .enabled -}}
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  {{- include "tollgate.metadata" (list $context "" .annotations .labels) | nindent 2 }}
spec:
  {{- with .className }}
  ingressClassName: {{ . }}
  {{- end }}
  rules:
    {{- range include "tollgate.externalHosts" (list .hosts $url) | fromJsonArray }}
    - host: {{ . | quote }}
      http:
        paths:
          - path: {{ $context.Values.ingress.path | default "/" }}
            pathType: {{ $context.Values.ingress.pathType | default "Prefix" }}
            backend:
              service:
                name: {{ include "tollgate.fullname" $context }}
                port:
                  name: http
    {{- end }}
  {{- with .tls }}
  tls:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* (list context url): the HTTPRoute, at the path of the URL unless the values have another. */}}
{{- define "tollgate.httpRoute" -}}
{{- $context := index . 0 -}}
{{- $url := index . 1 -}}
{{- with $context.Values.httpRoute -}}
{{- if .enabled -}}
{{- $path := .path | default (print "/" (trimAll "/" (urlParse $url).path)) -}}
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  {{- include "tollgate.metadata" (list $context "" .annotations .labels) | nindent 2 }}
spec:
  parentRefs:
    {{- toYaml .parentRefs | nindent 4 }}
  hostnames:
    {{- include "tollgate.externalHosts" (list .hostnames $url) | fromJsonArray | toYaml | nindent 4 }}
  rules:
    - matches:
        - path: {type: PathPrefix, value: {{ $path | quote }}}
      {{- $filters := .filters }}
      {{- if ne $path "/" }}
        {{- /* The service is at the root. */}}
        {{- $rewrite := dict "path" (dict "type" "ReplacePrefixMatch" "replacePrefixMatch" "/") }}
        {{- $filters = append $filters (dict "type" "URLRewrite" "urlRewrite" $rewrite) }}
      {{- end }}
      {{- with $filters }}
      filters:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .timeouts }}
      timeouts:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      backendRefs:
        - name: {{ include "tollgate.fullname" $context }}
          port: {{ $context.Values.ports.http }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* (dict "Values" … "prefix" "auth." "url" … "example" host): what they lack; a line each. */}}
{{- define "tollgate.routeProblems" -}}
{{- $values := .Values -}}
{{- if and $values.ingress.enabled (eq (include "tollgate.externalHosts" (list $values.ingress.hosts .url)) "[]") }}
{{ .prefix }}ingress.hosts, such as [{{ .example }}]
{{- end }}
{{- if $values.httpRoute.enabled }}
{{- if eq (include "tollgate.externalHosts" (list $values.httpRoute.hostnames .url)) "[]" }}
{{ .prefix }}httpRoute.hostnames, such as [{{ .example }}]
{{- end }}
{{- if not $values.httpRoute.parentRefs }}
{{ .prefix }}httpRoute.parentRefs, such as [{name: gateway, namespace: envoy-gateway-system}]
{{- end }}
{{- end }}
{{- end -}}
