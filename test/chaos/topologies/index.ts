import { startClusterTopology } from './cluster.js'
import { startSentinelTopology } from './sentinel.js'
import { startStandalone } from './standalone.js'
import type { Topology } from './topology.js'

const starters = { standalone: startStandalone, sentinel: startSentinelTopology, cluster: startClusterTopology }

export type TopologyName = keyof typeof starters

export const topologyNames = Object.keys(starters) as TopologyName[]

export const startTopology = (name: TopologyName): Promise<Topology> => starters[name]()
