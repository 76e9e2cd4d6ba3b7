import { policyKind } from '@tollgate/policies/definition/resource-shape';
import { resourceKind } from '@tollgate/rules/resource-shape';
import packageJson from '../../package.json' with { type: 'json' };
import { countDomains, type SnapshotStore } from '../catalog/snapshot.ts';
import type { HoldState } from '../deletions.ts';
import { notReadyReason, policyProblem, type ServerState } from '../server-state.ts';
import { formatTime, listReplicas } from './clients.ts';

/** Problems of the source that are listed. */
const maxProblems = 100;

export function getStatus(state: ServerState): object {
  const { pipeline, policies, snapshots, authServers, sourceName, replica } = state;
  const { lastEventMs, outages, problems, rules, hold } = pipeline.state();
  const reason = notReadyReason(state);
  const current = snapshots.current();
  const problem = policyProblem(policies);
  return {
    ...{ replica, release: packageJson.version, ready: reason === undefined },
    ...(reason !== undefined && { reason }),
    source: {
      type: sourceName,
      ...(lastEventMs !== undefined && { lastChangeAt: formatTime(lastEventMs) }),
      outages: outages.map(({ reason, sinceMs }) => ({ reason, since: formatTime(sinceMs) })),
      problems: problems.slice(0, maxProblems).map(({ source, message }) => ({ source, message })),
    },
    limits: { ...toVersion(snapshots), domains: current ? countDomains(current) : 0, limits: rules },
    ...(policies && {
      policies: {
        ...toVersion(authServers.snapshots),
        namespaces: authServers.snapshots.current()?.resources.size ?? 0,
        ...(problem !== undefined && { problem }),
      },
    }),
    heldDeletions: [...toHeld(resourceKind, hold), ...toHeld(policyKind, policies?.state().hold)],
    replicas: listReplicas(state),
  };
}

function toVersion(snapshots: SnapshotStore): object {
  const snapshot = snapshots.current();
  const sinceMs = snapshot && snapshots.sinceMs(snapshot);
  return {
    ...(snapshot && { version: snapshot.version }),
    ...(sinceMs !== undefined && { since: formatTime(sinceMs) }),
  };
}

function toHeld(kind: string, hold: HoldState | undefined): readonly object[] {
  if (hold === undefined) return [];
  const { reason, objects, command } = hold;
  return [{ kind, reason, objects, command }];
}
