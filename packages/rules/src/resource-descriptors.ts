import { metadataField } from './resource-metadata.ts';
import type { ResourcePlaces } from './resource-places.ts';
import { rateLimitField } from './resource-rate-limit.ts';
import { maxResourceDepth, resourceFields, resourceLists, resourceTexts } from './resource-shape.ts';
import {
  asMapping,
  booleanField,
  charge,
  checkFields,
  fieldOf,
  listField,
  type Mapping,
  report,
  requiredText,
  textField,
} from './resource-value.ts';
import type { DescriptorSpec } from './rule-document.ts';

/** The tree of `descriptors` in the spec of an object. */
export function readDescriptors(spec: Mapping, places: ResourcePlaces): readonly DescriptorSpec[] {
  return descriptorsField(spec, places, 1) ?? [];
}

function descriptorsField(
  parent: Mapping,
  places: ResourcePlaces,
  depth: number,
): readonly DescriptorSpec[] | undefined {
  const { read } = parent;
  const list = listField(parent, 'descriptors', resourceLists.descriptors);
  if (list === undefined || list.length === 0) return undefined;
  const field = fieldOf(parent, 'descriptors');
  if (depth > maxResourceDepth) {
    report(read, field, `nests deeper than ${maxResourceDepth} levels of descriptors`);
    return undefined;
  }
  const specs: DescriptorSpec[] = [];
  for (const [index, item] of list.entries()) {
    const itemField = `${field}[${index}]`;
    if (!charge(read, itemField)) break;
    const descriptor = asMapping(read, itemField, item);
    if (descriptor !== undefined) specs.push(readDescriptor(descriptor, places, depth));
  }
  return specs;
}

function readDescriptor(descriptor: Mapping, places: ResourcePlaces, depth: number): DescriptorSpec {
  const { field } = descriptor;
  const at = places.push({ entry: field, rule: field }) - 1;
  checkFields(descriptor, resourceFields.descriptor);
  return {
    key: requiredText(descriptor, 'key', resourceTexts.key) ?? '',
    value: textField(descriptor, 'value', resourceTexts.value),
    rateLimit: rateLimitField(descriptor, { at }),
    descriptors: descriptorsField(descriptor, places, depth + 1),
    shadowMode: booleanField(descriptor, 'shadowMode'),
    quotaMode: booleanField(descriptor, 'quotaMode'),
    detailedMetric: booleanField(descriptor, 'detailedMetric'),
    valueToMetric: booleanField(descriptor, 'valueToMetric'),
    shareThreshold: shareThresholdField(descriptor),
    metadata: metadataField(descriptor),
    at,
  };
}

/** The `shareThreshold` of a descriptor or of an entry of a match: it is for values with a wildcard. */
export function shareThresholdField(entry: Mapping): boolean | undefined {
  const shares = booleanField(entry, 'shareThreshold');
  const { value } = entry.values;
  if (shares === true && !(typeof value === 'string' && value.includes('*')))
    report(entry.read, fieldOf(entry, 'shareThreshold'), 'needs a value with a wildcard (*)');
  return shares;
}
