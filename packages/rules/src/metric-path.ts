import type { Entry } from './match.ts';
import type { RuleNode } from './rule-set.ts';

/** Whether a level's metric text depends on the request: value_to_metric on a bare key or a wildcard, not shared. */
export function isRuntimeLevel(node: RuleNode): boolean {
  return (
    node.valueToMetric && node.sharedValue === undefined && (isBare(node) || node.composite.includes('*'))
  );
}

/**
 * Metric text of a level as configured. With share_threshold and value_to_metric it ends before the `*`: the spec's
 * reading, where the original keeps the `*` (contract sections 0 and 1.9).
 */
export function staticMetricText(node: RuleNode): string {
  return node.sharedValue !== undefined && node.valueToMetric ? beforeStar(node) : node.composite;
}

/** Metric text of a level for one request (contract 1.9). */
export function metricText(node: RuleNode, entry: Entry, detailed: boolean): string {
  if (node.sharedValue !== undefined) return detailed ? beforeStar(node) : staticMetricText(node);
  if (detailed) return `${entry.key}_${entry.value}`;
  if (!isRuntimeLevel(node)) return node.composite;
  return entry.value === '' && isBare(node) ? entry.key : `${entry.key}_${entry.value}`;
}

const isBare = (node: RuleNode) => node.composite.length === node.keyLength;

const beforeStar = (node: RuleNode) => node.composite.slice(0, node.composite.indexOf('*', node.keyLength));
