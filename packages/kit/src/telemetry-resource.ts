import { randomUUID } from 'node:crypto';
import type { Attributes } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';

/** Who the telemetry is about. */
export type ResourceOptions = {
  readonly serviceName: string;
  /** Left out when empty. */
  readonly serviceNamespace?: string;
  /** A random UUID when empty. */
  readonly serviceInstanceId?: string;
  /** Further attributes, such as the version of the build. */
  readonly resourceAttributes?: Attributes;
};

/**
 * The resource of traces and metrics: what the SDK says of itself, then the variable `OTEL_RESOURCE_ATTRIBUTES`, then the options.
 *
 * @see https://opentelemetry.io/docs/specs/semconv/resource/#service
 */
export async function makeResource(options: ResourceOptions): Promise<Resource> {
  const { defaultResource, detectResources, resourceAttributesEnvDetector, resourceFromAttributes } =
    await import('@opentelemetry/resources');
  const { serviceName, serviceNamespace, serviceInstanceId, resourceAttributes } = options;
  return defaultResource()
    .merge(detectResources({ detectors: [resourceAttributesEnvDetector] }))
    .merge(
      resourceFromAttributes({
        'service.name': serviceName,
        ...(serviceNamespace && { 'service.namespace': serviceNamespace }),
        'service.instance.id': serviceInstanceId || randomUUID(),
        ...resourceAttributes,
      }),
    );
}
