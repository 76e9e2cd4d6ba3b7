import type { ContainerSpec, VariableSpec } from './pod-spec.ts';
import { fieldOf, type PodSurroundings } from './pod-surroundings.ts';

/** The variables of a container: `env` comes before `envFrom`, and `$(NAME)` stands for a variable that is there already. */
export function containerEnvironment(
  { env = [], envFrom = [] }: ContainerSpec,
  surroundings: PodSurroundings,
): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const { secretRef, configMapRef } of envFrom) {
    if (secretRef !== undefined) Object.assign(variables, surroundings.secret(secretRef));
    if (configMapRef !== undefined) Object.assign(variables, surroundings.configMap(configMapRef));
  }
  for (const variable of env) {
    const value = textOf(variable, variables, surroundings);
    if (value !== undefined) variables[variable.name] = value;
  }
  return variables;
}

function textOf(
  { name, value = '', valueFrom }: VariableSpec,
  variables: Readonly<Record<string, string>>,
  surroundings: PodSurroundings,
): string | undefined {
  if (valueFrom === undefined) return expand(value, variables);
  const { fieldRef, secretKeyRef, configMapKeyRef } = valueFrom;
  if (fieldRef !== undefined) return fieldOf(surroundings, fieldRef.fieldPath);
  const reference = secretKeyRef ?? configMapKeyRef;
  if (reference === undefined) throw new Error(`nothing is known of where ${name} comes from`);
  const data = secretKeyRef ? surroundings.secret(reference) : surroundings.configMap(reference);
  const found = data?.[reference.key];
  if (found === undefined && reference.optional !== true) {
    throw new Error(`${name} needs the key ${reference.key} of ${reference.name}`);
  }
  return found;
}

/** `$$(NAME)` and names of variables that there are not stay as they are, the former without a `$`. */
function expand(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\$|\$\(([^)]+)\)/g, (all, name: string | undefined) =>
    name === undefined ? '$' : (variables[name] ?? all),
  );
}
