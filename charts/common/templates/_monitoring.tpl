{{/* Shared by alerts, dashboards and scrapes. */}}

{{/* (list context enabled): "true" when objects of the Prometheus Operator are wanted; `auto` asks the cluster. */}}
{{- define "tollgate.wantsPrometheusOperator" -}}
{{- $known := (index . 0).Capabilities.APIVersions.Has "monitoring.coreos.com/v1" -}}
{{- if or (eq (toString (index . 1)) "true") (and (eq (toString (index . 1)) "auto") $known) }}true{{ end -}}
{{- end -}}

{{/* (list context file): a file of queries in which `$OWN` stands for the labels of this release's series. */}}
{{- define "tollgate.ownSeries" -}}
{{- $context := index . 0 -}}
{{- $own := printf "namespace='%s',service='%s-headless'" $context.Release.Namespace (include "tollgate.fullname" $context) -}}
{{- $context.Files.Get (index . 1) | replace "$OWN" $own -}}
{{- end -}}
