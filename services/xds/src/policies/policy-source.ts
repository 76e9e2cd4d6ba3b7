import type { Steps } from '@tollgate/kit/time';
import type { PolicyResource } from '@tollgate/policies/definition/spec';
import type { Route } from '@tollgate/proto/tollgate/policy/v1/access_config';
import type { ConfigObject, ResourceSource, SourceEvent } from '../catalog/source.ts';
import type { PolicyAncestor, PolicyFinding } from './policy-result.ts';

/** Where AccessPolicies come from: a cluster or a folder. */
export interface PolicySource extends Omit<ResourceSource, 'start'> {
  /** Resolves `targetRefs`. Absent in a source of policies that have only hosts. */
  readonly targets?: TargetResolver | undefined;
  /** Why no policy can exist, such as without the CRD. Absent in sources that never know. */
  missingReason?(): string | undefined;
  /** Starts to follow the objects. Rejects when the source cannot exist. */
  start(listener: PolicyListener): Promise<void>;
}

export interface PolicyListener {
  /** Gets every event of a policy, in order; the first one has all policies. */
  onEvent(event: SourceEvent): void;
  /**
   * Objects that `targetRefs` are resolved with, or that say which hosts a namespace may have, were
   * read for the first time, or have changed.
   */
  onTargets(): void;
}

/** Finds what policies with `targetRefs` are for. It knows the current objects. */
export interface TargetResolver {
  /** Why nothing may be served yet: not all objects were read once. */
  notSyncedReason(): string | undefined;
  resolve(policies: readonly TargetedPolicy[]): Steps<TargetResolution>;
  /** Problems of policies of one namespace by `namespace/name`, as the objects are now. */
  findProblems(policies: readonly TargetedPolicy[]): TargetResolution['problems'];
}

/** A policy, which may have no `targetRefs`. */
interface TargetedPolicy {
  readonly object: ConfigObject;
  /**
   * The version in force. Undefined when there never was a valid one: rules of routes name the
   * policy nevertheless, because their requests are denied.
   */
  readonly resource: PolicyResource | undefined;
}

export interface TargetResolution {
  /** Routes by namespace; the same list when nothing has changed. */
  readonly routes: ReadonlyMap<string, readonly Route[]>;
  /** Problems of policies by `namespace/name`: a target does not exist, or has another policy. */
  readonly problems: ReadonlyMap<string, readonly PolicyFinding[]>;
  /** Ancestors of policies with targets, by `namespace/name`. */
  readonly ancestors: ReadonlyMap<string, readonly PolicyAncestor[]>;
}
