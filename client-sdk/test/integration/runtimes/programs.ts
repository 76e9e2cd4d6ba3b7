/**
 * Programs that are bundled and run in all runtimes.
 *
 * @module
 */
import { type NodeProgramInput, type NodeSdk, nodeSteps } from './node-program.ts';
import { type Report, runSteps } from './run-steps.ts';
import { type WebProgramInput, type WebSdk, webSteps } from './web-program.ts';

/** Runs what needs the web's APIs alone. */
export function runWeb(sdk: WebSdk, input: WebProgramInput): Promise<Report> {
  return runSteps(webSteps, sdk, input);
}

/** Runs what needs modules of Node. */
export function runNode(sdk: NodeSdk, input: NodeProgramInput): Promise<Report> {
  return runSteps(nodeSteps, sdk, input);
}
