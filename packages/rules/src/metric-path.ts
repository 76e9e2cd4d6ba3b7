import type { Entry } from './match.ts';
import type { RuleNode } from './rule-set.ts';

/** Whether a level's metric text depends on the request: value_to_metric on a bare key or a wildcard, not shared. */
export function isRuntimeLevel(node: RuleNode): boolean {
  return node.valueToMetric && !node.sharesThreshold && (isBare(node) || node.composite.includes('*'));
}

/**
 * Metric text of a level as configured. With share_threshold and value_to_metric it ends before the `*`: the spec's
 * reading, where the original keeps the `*` (contract sections 0 and 1.9).
 */
export function staticMetricText(node: RuleNode): string {
  return node.sharesThreshold && node.valueToMetric ? beforeStar(node) : node.composite;
}

/** The rule that a metric is for. */
export interface MetricRule {
  /** detailed_metric was set. */
  readonly detailed: boolean;
  /** One of its levels has share_threshold. */
  readonly shares: boolean;
}

/** Metric text of a level for one request (contract 1.9). */
export function metricText(node: RuleNode, { key, value }: Entry, { detailed, shares }: MetricRule): string {
  if (node.sharesThreshold) return detailed ? beforeStar(node) : staticMetricText(node);
  if (!detailed && !isRuntimeLevel(node)) return node.composite;
  // As in the original: an empty value leaves its underscore in detailed metrics, unless a level is shared.
  const onlyKey = value === '' && (!detailed || shares);
  return onlyKey ? key : `${key}_${value}`;
}

const isBare = (node: RuleNode) => node.composite.length === node.keyLength;

/** A `*` in the key counts only when the value has none. */
function beforeStar({ composite, keyLength }: RuleNode): string {
  const inValue = composite.indexOf('*', keyLength);
  return composite.slice(0, inValue === -1 ? composite.indexOf('*') : inValue);
}
