import { resourceGroup, resourceKind, resourceVersion } from '@tollgate/rules/resource-shape';
import { specSchema } from './spec-schema.ts';
import { statusSchema } from './status-schema.ts';

const conditionColumn = (type: string, field: string) => `.status.conditions[?(@.type=='${type}')].${field}`;

/** The CustomResourceDefinition of RateLimitConfig. */
export const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: `ratelimitconfigs.${resourceGroup}`,
    labels: { 'app.kubernetes.io/part-of': 'tollgate' },
  },
  spec: {
    group: resourceGroup,
    scope: 'Namespaced',
    names: {
      kind: resourceKind,
      listKind: `${resourceKind}List`,
      plural: 'ratelimitconfigs',
      singular: 'ratelimitconfig',
      shortNames: ['rlc'],
      // Not `all`: `kubectl get all` is for what runs.
      categories: ['tollgate'],
    },
    versions: [
      {
        name: resourceVersion,
        served: true,
        storage: true,
        subresources: { status: {} },
        selectableFields: [{ jsonPath: '.spec.domain' }],
        additionalPrinterColumns: [
          { name: 'Domain', type: 'string', jsonPath: '.spec.domain' },
          { name: 'Rules', type: 'integer', jsonPath: '.status.rules' },
          { name: 'Accepted', type: 'string', jsonPath: conditionColumn('Accepted', 'status') },
          { name: 'Programmed', type: 'string', jsonPath: conditionColumn('Programmed', 'status') },
          { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
          { name: 'Reason', type: 'string', priority: 1, jsonPath: conditionColumn('Accepted', 'reason') },
        ],
        schema: {
          openAPIV3Schema: {
            description:
              'Rate limits of one domain. Applying it changes what the rate limit services enforce; the status says whether they do.',
            type: 'object',
            required: ['spec'],
            properties: {
              apiVersion: { type: 'string' },
              kind: { type: 'string' },
              metadata: { type: 'object' },
              spec: specSchema,
              status: statusSchema,
            },
          },
        },
      },
    ],
  },
};
